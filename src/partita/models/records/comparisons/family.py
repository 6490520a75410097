"""Compiled evidence of records: every value of a cluster compared with every other.

Two values of an attribute are alike to one of ``LEVELS`` degrees, from not at all to the very same
(:mod:`.similarity`). How much that says is a likelihood ratio, as in Fellegi and Sunter (1969):

    e(v, w) = log m(level) − log max(u_v(level), u_w(level)),

m being how often values of one entity are so alike, and u_v how often those of *other* entities are as alike to v. So
agreement is worth no more than how rare a value is among entities, and a text that resembles many says little.

The values of a cluster are taken to be copies of each other: each but the first has been copied from one of the others,
so that they make up a tree. As nobody knows which, the evidence of n values is the mean over all n^(n−2) trees

    (1/q)·log [ Σ_trees Π_{(i,j) in tree} exp(q·e(v_i, v_j)) / n^(n−2) ],

which is a determinant (Kirchhoff 1847; :func:`.values.evidence`). Of two values it is e itself, of n equal ones n − 1
times as much: joining two clusters says once that they agree, however large they are, and once that they differ. With
q = 1 it is a mixture, which forgives an entity with two values half of its pairs; with q near 0 it is n − 1 times the
mean of the evidence of all pairs, which forgives nothing. An entity that has two of something has two of much: so
that this is not paid for in every column, q grows with the number of columns (:meth:`Record._sharpness`).

Records that say one thing alone have no other column to tell who is alike by chance, and with trees names would form
chains, each alike to the next. There q is 0 (``LINKED``) and the evidence is that of average linkage (UPGMA): different
values are joined, those first that are most alike, and each time it is said once how alike the two groups are, which is
the mean of e over all pairs between them; equal values say e each time again.

log p(c) is the sum over attributes, each with a weight, as columns that go together must not count as if they were
independent, of what :mod:`.presence` says of the attributes that are mentioned, and of −κ·lgamma(|c|): a Dirichlet
process gives as much for joining two large clusters as telling their fragments apart costs in one attribute, and with
weights below 1 that is not always paid. With κ = 0 there are as many entities of n fragments as 1/n says, with κ = 1 as
1/n!, as if each fragment had chosen its entity at random. Where entities have s fragments on average κ is 1/s, at least
``CROWDING``: many copies of one thing are the exception where most have none. With linkage κ is 1, so that α is the
odds against any two values being of one entity. It is a potential, relative to all
values being strangers, and depends on the set alone, to the last bit: it is computed in an order that follows from what
the values say, whatever the order in which fragments came, in every process.

Features are numbered through from 1: values, and for each attribute the count of its values and of the fragments that
mention it. A cluster is a table of counts of them (:mod:`partita.models.records.tables`); beside the count of an
attribute's values is what these say. An observation is a range of ``items``: its values, sorted by attribute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.extending import typeof_impl

from partita._core.typing import Floats, Integers
from partita.models.records.tables import TABLES

LEVELS = 8  # of similarity; the last is equality
BOUNDS = np.array([0.15, 0.3, 0.45, 0.6, 0.75, 0.9])  # of the others: where each ends
SHARPNESS = 0.6  # q of one column
LINKED = 0.0  # q where the evidence is that of average linkage instead
CROWDING = 0.3  # κ at least: what of the Dirichlet process's lgamma(|c|) is taken back
SAME, ALIKE, NEAR, OTHERS = range(
    4
)  # how values are compared: equality, texts, numbers; or by a kernel of its own
VALUES, PRESENT = range(2)  # what is counted of an attribute
MENTIONS = np.int64(1)  # the feature that counts attributes mentioned, in all
UNHEARD = -1.0  # expected of an attribute that none has mentioned: that some do now is no evidence
NOBODY = -1  # owner of a feature that is no value


class ComparisonFamily(NamedTuple):
    """What the kernels need to know of a record model, its vocabulary and its tables."""

    items: Integers  # values of the observations, one observation after the other
    owner: Integers  # of each feature: the attribute that it is a value of, or NOBODY
    rank: Integers  # of each value: where it comes in the order of computation, by what it says
    number: Floats  # of each value: the number that it is, for NEAR and OTHERS
    first: Integers  # of each value: where its parts begin
    last: Integers  # and end
    grams: Integers  # parts of values, ascending
    weights: Floats  # and what each counts; the squares of a value's sum to 1, nearly
    log_u: Any  # of each value and level: how often other entities are as alike to it
    log_m: Any  # of each attribute and level: how often values of one entity are
    strength: Floats  # of each attribute: what its evidence counts
    measure: Integers  # of each attribute: SAME, ALIKE, NEAR, or OTHERS and on
    scale: Floats  # of each attribute: how far numbers may lie apart to be alike
    sharpness: float  # q
    crowding: float  # κ
    totals: Any  # of each attribute: the features that count its VALUES and where it is PRESENT
    presence: Floats  # of each type a row: b·f of each attribute, b·Σf, b and the type's log-probability
    tables: Any
    others: Any  # of each attribute with a kernel of its own, what that needs to know


INTEGERS, FLOATS = types.int64[::1], types.float64[::1]
OF_FIELDS = {
    "items": INTEGERS,
    "owner": INTEGERS,
    "rank": INTEGERS,
    "number": FLOATS,
    "first": INTEGERS,
    "last": INTEGERS,
    "grams": INTEGERS,
    "weights": FLOATS,
    "log_u": types.float64[:, ::1],
    "log_m": types.float64[:, ::1],
    "strength": FLOATS,
    "measure": INTEGERS,
    "scale": FLOATS,
    "sharpness": types.float64,
    "crowding": types.float64,
    "totals": types.int64[:, ::1],
    "presence": types.float64[:, ::1],
    "tables": TABLES,
}


def family_type(others: Any) -> Any:
    """Numba's type of a family, given that of its ``others``."""
    fields = OF_FIELDS | {"others": others}
    return types.NamedTuple([fields[name] for name in ComparisonFamily._fields], ComparisonFamily)


COMPARISON_FAMILY = family_type(types.Tuple(()))


@typeof_impl.register(ComparisonFamily)
def _type_of_family(value, context):
    """The same for most, so that a call need not look at every field: that takes longer than most calls."""
    return COMPARISON_FAMILY if not value.others else family_type(typeof(value.others))
