"""Compiled likelihood of texts and records: nested urns over values, words and letters.

What a cluster says of one attribute is a set of *values*. A value is drawn from an urn (Blackwell and
MacQueen 1973): with probability n_v / (N + θ) it is one that the cluster has seen n_v times among N, else it
is new to the cluster. A new value is either one of the *common* ones, with its frequency in the corpus, or
*composed* of words. Words come from a second urn of the cluster, in which the words of its distinct values
are: m_w / (M + φ) for one that is there, else φ / (M + φ) times the base of the word. A word's base again is
its frequency if it is common; a *rare* one is spelled, letter by letter, by an n-gram model of the cluster's
own letters, Dirichlet with strength s centred on the corpus:

    Π (s·q(letter | context) + n(context, letter)) / (s + n(context)).

Composed values are given the words of the common ones, rare words the letters of the common ones. So a repeat
is cheap, a variant that shares words or patterns of letters is likely, the more so the rarer they are, an
unrelated string pays for itself; and p(c) is a closed form in counts, the same for every order. (A new draw
that happens to equal an old one is left out, so probabilities sum to a little less than one.) A category has
no composed values, an ``Ngram`` no urns.

Features of all kinds are numbered through from 1, and a cluster is a table of counts of them (``tables.py``).
Some come in pairs: next to the count of a word in all of a cluster's distinct values is that in common
values, next to that of letters in its distinct rare words that in common ones. An observation is a range of
``items``: its values, sorted by attribute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import typeof_impl

from partita._core.typing import Floats, Integers
from partita.models.records.tables import TABLES

# Kinds of features; those in pairs are followed by their second.
VALUE, COMPOSED, WORD, RARE, IN_COMMON, LETTER, CONTEXT, OF_COMMON, TOTAL = range(9)
VALUES, WORDS, COMMON_WORDS, SPELLED, N_COMPOSED = range(5)  # totals of an attribute


class UrnFamily(NamedTuple):
    """What the kernels need to know of a text or record model, its vocabulary and its tables."""

    items: Integers  # values of the observations, one observation after the other
    kind: Integers  # of each feature
    owner: Integers  # of each feature: its attribute
    base: Floats  # of values and words: a log-probability; of contexts s, of letters s·q; a NUMBER
    first: Integers  # of each value or word: where its parts begin
    last: Integers  # and end
    parts: Integers  # of a value its words; of a word contexts and letters, in turn; see ``Vocabulary.value``
    theta: Floats  # of each attribute: of its urn of values; negative without one
    phi: Floats  # of its urn of words
    totals: Integers  # of each attribute: the features that count its values, words, …
    tables: Any


INTEGERS, FLOATS = types.int64[::1], types.float64[::1]
OF_FIELDS = {
    "items": INTEGERS,
    "kind": INTEGERS,
    "owner": INTEGERS,
    "base": FLOATS,
    "first": INTEGERS,
    "last": INTEGERS,
    "parts": INTEGERS,
    "theta": FLOATS,
    "phi": FLOATS,
    "totals": types.int64[:, ::1],
    "tables": TABLES,
}


URN_FAMILY = types.NamedTuple([OF_FIELDS[name] for name in UrnFamily._fields], UrnFamily)


@typeof_impl.register(UrnFamily)
def _type_of_family(value, context):
    """Always the same, so that a call need not look at every field: that takes longer than most calls."""
    return URN_FAMILY
