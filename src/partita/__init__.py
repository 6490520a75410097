"""Partita: online Bayesian clustering that says how sure it is.

Names are imported on first use, so that ``import partita`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from partita._core.version import __version__ as __version__
from partita.models import registry

if TYPE_CHECKING:
    from partita.metrics import bcubed as bcubed
    from partita.models.base import Model as Model
    from partita.models.black_box import BlackBox as BlackBox
    from partita.models.numeric.bernoulli import Bernoulli as Bernoulli
    from partita.models.numeric.categorical import Categorical as Categorical
    from partita.models.numeric.gaussian import Gaussian as Gaussian
    from partita.models.numeric.multivariate import MultivariateGaussian as MultivariateGaussian
    from partita.models.records.kinds import Category as Category
    from partita.models.records.kinds import Date as Date
    from partita.models.records.kinds import Number as Number
    from partita.models.records.kinds import Text as Text
    from partita.models.records.kinds import Value as Value
    from partita.models.records.ngram import Ngram as Ngram
    from partita.models.records.record import Record as Record
    from partita.offline.agglomerative import Agglomerative as Agglomerative
    from partita.offline.gibbs import Gibbs as Gibbs
    from partita.posterior import Posterior as Posterior
    from partita.priors import DirichletProcess as DirichletProcess
    from partita.smc.sampler import SMC as SMC
    from partita.smc.sampler import Greedy as Greedy
    from partita.smc.sampler import SplitSMC as SplitSMC

# Models are taught by what is made of models and samplers; here the two are introduced to each other.
registry.teachers = lambda: import_module("partita.learning")

_HOMES = {
    "SplitSMC": "smc.sampler",
    "SMC": "smc.sampler",
    "Greedy": "smc.sampler",
    "Gibbs": "offline.gibbs",
    "Agglomerative": "offline.agglomerative",
    "Posterior": "posterior",
    "Model": "models.base",
    "Gaussian": "models.numeric.gaussian",
    "MultivariateGaussian": "models.numeric.multivariate",
    "Categorical": "models.numeric.categorical",
    "Bernoulli": "models.numeric.bernoulli",
    "Ngram": "models.records.ngram",
    "Record": "models.records.record",
    "Text": "models.records.kinds",
    "Category": "models.records.kinds",
    "Date": "models.records.kinds",
    "Value": "models.records.kinds",
    "Number": "models.records.kinds",
    "BlackBox": "models.black_box",
    "CompiledModel": "models.base",
    "Kernels": "models.scoring.families",
    "Attribute": "models.records.kinds",
    "register": "models.registry",
    "inner": "_core.kernel",
    "DirichletProcess": "priors",
    "bcubed": "metrics",
    "metrics": "",
    "datasets": "",
    "plots": "",
    "kb": "",
    "neural": "",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'partita' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"partita.{home}"), name) if home else import_module(f"partita.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
