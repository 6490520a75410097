"""How priors are learnt: the one place that needs both models and samplers.

``Model.fit_prior`` asks :mod:`partita.models.registry`, where these register: empirical Bayes for compiled models,
for texts and for records, calibration for black boxes.
"""

from partita.learning import calibration, empirical_bayes, ngrams, records

__all__ = ["calibration", "empirical_bayes", "ngrams", "records"]
