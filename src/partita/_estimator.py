"""What all estimators share: checks of what users give, before anything has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from partita._core.checks import check_finite
from partita.models.base import Model, copied, n_features_of
from partita.models.numeric.gaussian import Gaussian
from partita.models.records.arrow import for_an_estimator
from partita.models.records.fragments import are_fragments
from partita.models.records.record import Record


class Clusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: has a ``model`` and a ``random_state``, and validates data."""

    model: Model | None
    model_: Model
    random_state: Any
    _inferred: Record  # from fragments that came without a model

    @contextmanager
    def _same_attributes_if_it_fails(self) -> Iterator[None]:
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _validated(self, X: Any, reset: bool) -> Any:
        """The rows as finite floats, or what else the model takes.

        What are finite floats already need not pass scikit-learn's slower checks.
        """
        model = self._reader() if reset else self.model_
        X = for_an_estimator(X)
        if isinstance(model, Model) and not model.reads_rows:
            return model.validate(X)
        if reset and are_fragments(X):
            if model is not None:
                raise TypeError(
                    f"X has mappings, which {type(model).__name__} cannot read: give a Record, or no model"
                )
            self._inferred = Record.infer(X)
            return self._inferred.validate(X)
        if reset or not (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        ):
            if isinstance(X, list | tuple) and not X:
                raise ValueError("X has no rows; at least one is needed")
            if np.ma.is_masked(X):
                row, column = np.argwhere(np.ma.getmaskarray(X))[0]
                raise ValueError(f"row {row}, column {column} is masked; drop the row or fill the value in")
            X = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        check_finite(X)
        return np.ascontiguousarray(X)

    def _reader(self) -> Model | None:
        """The model that decides what observations must be."""
        return self.model

    def _own_model(self, X: Any) -> Model:
        """The model to use for ``X``: a copy of the given one, or one that suits the data, fitted to them."""
        if self.model is not None:
            return own_copy("model", self.model, X)
        if isinstance(X, np.ndarray):
            fitted: Model = Gaussian().fit_prior(X)
            return fitted
        model: Model = self._inferred.fit_prior(X)
        model.check(n_features_of(X))
        return model

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def own_copy(name: str, model: Any, X: Any) -> Model:
    """A copy of a model that suits the data; TypeError or ValueError if it is none or does not."""
    if not isinstance(model, Model):
        raise TypeError(f"{name} must be a partita model, got {type(model).__name__}; see partita.Model")
    own = copied(model)
    own.check(n_features_of(X))
    return own
