"""What models and attribute kinds there are, by name; the door for those of others.

``register`` makes a compiled model or an attribute kind known, built in or a third party's alike: its kernels to
the compiled loops, its name to files, its schema name to TOML. ``learn`` is how a prior is learnt from data. That
takes samplers, which are made of models, so it is done above them, in :mod:`partita.learning`, which registers
here; ``partita/__init__.py`` says where it is to be found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import singledispatch
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

MODELS: dict[str, Any] = {}  # by class name: models that a file can hold, each made anew by its ``from_json``
FAMILIES: dict[type, Any] = {}  # by the class of their hyperparameters as kernels read them: compiled models
KINDS: dict[str, Any] = {}  # by their names in a schema: kinds of attributes

teachers: Callable[[], Any] = (
    dict  # loads what teaches models, before the first lesson; set by partita/__init__.py
)


def register(kind: T) -> T:
    """Make a compiled model or an attribute kind known everywhere: fit, save, load, schemas, explanations.

    Parameters
    ----------
    kind : subclass of CompiledModel or Attribute
        It must live in a module that can be imported, so that files and caches find it again.

    Returns
    -------
    kind
        As it is, so that this can be a decorator.

    Raises
    ------
    TypeError, ValueError
        If it lacks something, or its name is that of another one.

    Examples
    --------
    See docs/extending.md for a whole model and a whole kind.
    """
    entries = getattr(kind, "_entries", None)
    if entries is None or not isinstance(kind, type):
        what = getattr(kind, "__name__", repr(kind))
        raise TypeError(f"{what} is neither a CompiledModel nor an Attribute: there is nothing to register")
    found = entries()
    for table, key in found:
        if (known := table.get(key)) is not None and not is_same(known, kind, table):
            raise ValueError(
                f"{key!r} is taken by {known.__module__}.{known.__qualname__}: choose another name"
            )
    for table, key in found:
        if table is not FAMILIES or key not in table or table[key].__qualname__ == kind.__qualname__:
            table[key] = kind
    return kind


def is_same(known: Any, kind: Any, table: Any) -> bool:
    """Whether two classes are the same one, maybe defined again, or of one family, with its kernels."""
    again = (known.__module__, known.__qualname__) == (kind.__module__, kind.__qualname__)
    shares = getattr(known, "kernels", known) is getattr(kind, "kernels", kind)
    return again or (table is FAMILIES and shares)


def found(table: dict[str, Any], name: str) -> Any:
    """A model or a kind by its name; those of others are looked for where they say that they are.

    That is in the entry points of the group "partita" of what is installed, and in the modules that the environment
    variable PARTITA_IMPORT names, divided by commas: so that the command line knows them. None if there is none.
    """
    if name not in table:
        for entry in entry_points(group="partita"):
            entry.load()
        for module in filter(None, os.environ.get("PARTITA_IMPORT", "").split(",")):
            import_module(module.strip())
    return table.get(name)


@singledispatch
def learn(model: Any, X: Any, labels: Any = None, **options: Any) -> Any:
    """A new model like the given one, with hyperparameters learnt from data; it is left as it is."""
    raise TypeError(f"{type(model).__name__} has no fit_prior; set its hyperparameters instead")


def taught(model: Any, X: Any, labels: Any = None, **options: Any) -> Any:
    """:func:`learn`, with all teachers there."""
    teachers()
    return learn(model, X, labels, **options)
