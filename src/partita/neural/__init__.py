"""Likelihoods that are neural networks: sets of points, and fragments of entities (the extra ``neural``).

>>> from partita.neural import JsonLM, SetDiffusion  # doctest: +SKIP

Both are functions from clusters to log-likelihoods, for :class:`partita.BlackBox`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.neural.diffusion import SetDiffusion
    from partita.neural.jsonlm import JsonLM

__all__ = ["JsonLM", "SetDiffusion"]

MODULES = {"JsonLM": "partita.neural.jsonlm", "SetDiffusion": "partita.neural.diffusion"}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require()
    return getattr(import_module(MODULES[name]), name)


def require() -> None:
    """ImportError that says what to install, where the extra is missing."""
    try:
        for module in ("jax", "equinox", "optax", "tokenizers", "safetensors"):
            import_module(module)
    except ImportError as error:
        raise ImportError(
            f'neural likelihoods need {error.name}, which is not installed: pip install "partita[neural]"',
            name=error.name,
        ) from error
