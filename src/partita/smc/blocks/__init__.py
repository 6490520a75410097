"""Blocks: sets of observations that are clustered each by itself, so that many can be at the same time.

Connected components of shared keys do not divide real data: the largest holds nearly everything. What divides it is
evidence. :mod:`.near` finds which observations share a key that is not too common, :mod:`.edges` scores those pairs
with the model as it is and links those above a low log-odds, :mod:`.components` makes blocks of what is linked, and
:mod:`.run` runs each block through an empty sampler.

Within a block a step reads that block's observations, the model, α and a seed made from the number of its first
observation, and nothing else: the no-overlap condition of the paper's proposition 3.1. So what comes of a block is the
same to the last bit whichever blocks are run beside it, wherever, and in whatever order, and the product of what
comes of all blocks is the posterior.
"""
