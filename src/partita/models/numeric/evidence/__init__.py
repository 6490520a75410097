"""What there is to learn about each model's prior, and how well it explains given clusters.

A *learner* stands between the data and a model's hyperparameters. Its ``starts`` are hyperparameters to
start from; ``maximise`` finds those with the highest evidence Σ_c log p(c) for a given clustering, in closed
form from sufficient statistics and with the gradient; ``parameters`` says them in the model's own terms.

Real numbers are standardised first, by quantiles, and clusters are summarised by their means and squared
deviations about them, so that neither an offset nor the unit of measurement nor an outlier costs digits or
changes the answer.

A hyperprior keeps everything finite where the data say nothing (every cluster a single point, one cluster
only, n = 1): normal and independent in the logarithms, with a factor of twenty (e³) to either side for most,
so that data that do say something win. Two kinds of data would still make the evidence infinite. A column
that never varies is left out. And values are known only to the smallest step δ between two of them, so each
counts as spread over δ, with a variance of δ²/12 about itself: repeats and rounded values then make small
clusters, not infinite densities. Where all values differ δ is so small that this changes nothing.
"""
