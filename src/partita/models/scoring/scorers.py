"""Which scorer is a model's."""

from __future__ import annotations

from typing import Any

from partita.models.base import CompiledModel, Model, n_features_of
from partita.models.black_box import BlackBox
from partita.models.scoring.additive import AdditiveScorer
from partita.models.scoring.black_box import BlackBoxScorer
from partita.models.scoring.compiled import CompiledScorer
from partita.models.scoring.contract import Scorer


def scorer_for(model: Model, n_features: int, n_encoded: int) -> Scorer:
    """The scorer of a model, for observations of so many numbers before and after they are encoded.

    That of a black box begins with an empty cache.
    """
    if isinstance(model, CompiledModel):
        return CompiledScorer(model, n_features)
    if isinstance(model, BlackBox):
        beside = model.surrogate
        return BlackBoxScorer(model, None if beside is None else scorer_for(beside, n_features, n_encoded))
    return AdditiveScorer(model, n_encoded)


def scorer_of(model: Model, X: Any) -> Scorer:
    """:func:`scorer_for` validated observations; that of a black box without its surrogate."""
    if isinstance(model, BlackBox):
        return BlackBoxScorer(model)
    return scorer_for(model, n_features_of(X), model.encoded_width(X))
