"""Compiled likelihood of texts: letters drawn from urns, one urn a context.

A letter is drawn from the urn of the letters before it, its *context* (Blackwell and MacQueen 1973): with the
pseudo-counts a of the letter and A of all letters after the context, given how often the cluster has each already,

    (a + n(context, letter)) / (A + n(context)).

p(c) is the product over all letters of all texts, a closed form in counts, the same for every order.

Contexts, and letters after a context, are *features*, numbered through from 1, and a cluster is a table of counts of
them (:mod:`partita.models.records.tables`). A *token* is one letter of an observation and its context. An observation
is a range of texts, a text a range of tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import typeof_impl

from partita._core.typing import Floats, Integers
from partita.models.records.tables import TABLES

CONTEXT, LETTER, CONTEXT_BEFORE, LETTER_BEFORE = range(4)  # of a token


class UrnFamily(NamedTuple):
    """What the kernels need to know of a text model, its vocabulary and its tables."""

    tokens: Any  # of each: CONTEXT, LETTER, and how often its observation has had them before
    starts: Integers  # of each text: where its tokens begin; then where those of the last one end
    base: Floats  # of each feature: A of a context, a of a letter
    sign: Floats  # and the sign with which it counts in log p(c): letters are drawn, contexts divide
    tables: Any


URN_FAMILY = types.NamedTuple(
    [types.int64[:, ::1], types.int64[::1], types.float64[::1], types.float64[::1], TABLES], UrnFamily
)


@typeof_impl.register(UrnFamily)
def _type_of_family(value, context):
    """Always the same, so that a call need not look at every field: that takes longer than most calls."""
    return URN_FAMILY
