"""Compiled likelihoods: what the samplers' kernels call for a compiled model.

To the kernels a model is a *family*: a named tuple of hyperparameters, whose class says which compiled
functions apply. They are chosen by that class when a kernel is compiled, so a stream of one model compiles
and runs nothing of the others, and no function is ever passed into a cached kernel. All work in place on rows
of ``statistics``, one row a cluster; :class:`Kernels` says what each does. ``@register`` on the model makes them
known here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import overload

from partita._core.kernel import INNER
from partita.models.records.tables import free_all
from partita.models.registry import FAMILIES


class Kernels(NamedTuple):
    """The compiled functions of a family, each decorated with ``inner``.

    Attributes
    ----------
    begin : (family, statistics, d)
        Write the row of the empty cluster, row 0.
    gains : (family, statistics, ids, first, last, data, x, out)
        log|c| + log p(x | c) for the clusters c = ids[first:last], into out[c], from what the others have
        prepared; log p(x) for the empty cluster.
    extend : (family, statistics, child, parent, size, data, x)
        Write the row of parent ∪ {x}; ``size`` counts the parent's members. Child and parent may be the same.
    reduce : (family, statistics, child, parent, size, data, x)
        Write the row of the parent without x; return false where cancellation would cost accuracy, and the
        caller then builds the row from the members.
    join : (family, statistics, child, first, second, size_first, size_second, d)
        Write the row of a union; the child may be one of the two.
    log_marginal : (family, statistics, c, size, d)
        log p(c) of a row that one of the others has written.
    enclose : (family, statistics, ids, first, last, hulls, s, d), optional
        Write a *hull* of the clusters ids[first:last] into row s of ``hulls``, as wide as ``statistics``.
    ceiling : (family, hulls, s, data, x), optional
        Up to rounding no less than the gain of any enclosed cluster, so that the clusters of a subproblem need
        not be scored where none of them can matter. It must be near the gains to be of use: one for records,
        from the highest counts of features, was 6 to 30 nats too high and cost as much as it saved.
    """

    begin: Any
    gains: Any
    extend: Any
    reduce: Any
    join: Any
    log_marginal: Any
    enclose: Any = None
    ceiling: Any = None


def begin(family: Any, statistics: Any, d: Any) -> None:
    """Write the row of the empty cluster."""


def gains(family: Any, statistics: Any, ids: Any, first: Any, last: Any, data: Any, x: Any, out: Any) -> None:
    """log|c| + log p(x | c) of observation ``x`` and each of many clusters."""


def extend(family: Any, statistics: Any, child: Any, parent: Any, size: Any, data: Any, x: Any) -> None:
    """Write the row of ``child`` = ``parent`` ∪ {x}; ``size`` counts the parent's members."""


def reduce(family: Any, statistics: Any, child: Any, parent: Any, size: Any, data: Any, x: Any) -> Any:
    """Write the row of ``child`` = ``parent`` without x; false where that would lose digits."""


def join(
    family: Any,
    statistics: Any,
    child: Any,
    first: Any,
    second: Any,
    size_first: Any,
    size_second: Any,
    d: Any,
) -> None:
    """Write the row of ``child`` = ``first`` ∪ ``second``, which may be one of the two."""


def log_marginal(family: Any, statistics: Any, c: Any, size: Any, d: Any) -> Any:
    """log p(c) of a cluster of ``size`` members."""


def enclose(
    family: Any, statistics: Any, ids: Any, first: Any, last: Any, hulls: Any, s: Any, d: Any
) -> None:
    """Write the hull of many clusters."""


def ceiling(family: Any, hulls: Any, s: Any, data: Any, x: Any) -> Any:
    """What log|c| + log p(x | c) of no enclosed cluster exceeds."""


def is_family(family: Any) -> bool:
    """Whether this is the type of a compiled family, and not that of None."""
    return isinstance(family, types.BaseNamedTuple)


def has_ceiling(family: Any) -> bool:
    """Whether the family of this type has hulls and ceilings."""
    return is_family(family) and FAMILIES[family.instance_class].kernels.ceiling is not None


def _implementation(family: Any, name: str) -> Any:
    """What the type of ``family`` asks for; None if it is no family."""
    if is_family(family):
        return getattr(FAMILIES[family.instance_class].kernels, name).py_func
    return None


def clear_tables(family: Any) -> None:
    """Free all tables that a family owns, if it owns any."""


@overload(clear_tables, jit_options=INNER)
def _clear_tables(family):
    if "tables" in family.fields:

        def clear(family):
            free_all(family.tables)

        return clear
    return lambda family: None


@overload(begin, jit_options=INNER)
def _begin(family, statistics, d):
    return _implementation(family, "begin")


@overload(gains, jit_options=INNER)
def _gains(family, statistics, ids, first, last, data, x, out):
    if _implementation(family, "gains") is None:
        return None
    function = FAMILIES[
        family.instance_class
    ].kernels.gains  # as it is: it may be one that is cached by itself

    def call(family, statistics, ids, first, last, data, x, out):
        function(family, statistics, ids, first, last, data, x, out)

    return call


@overload(extend, jit_options=INNER)
def _extend(family, statistics, child, parent, size, data, x):
    return _implementation(family, "extend")


@overload(reduce, jit_options=INNER)
def _reduce(family, statistics, child, parent, size, data, x):
    return _implementation(family, "reduce")


@overload(join, jit_options=INNER)
def _join(family, statistics, child, first, second, size_first, size_second, d):
    return _implementation(family, "join")


@overload(log_marginal, jit_options=INNER)
def _log_marginal(family, statistics, c, size, d):
    return _implementation(family, "log_marginal")


@overload(enclose, jit_options=INNER)
def _enclose(family, statistics, ids, first, last, hulls, s, d):
    return _implementation(family, "enclose")


@overload(ceiling, jit_options=INNER)
def _ceiling(family, hulls, s, data, x):
    return _implementation(family, "ceiling")
