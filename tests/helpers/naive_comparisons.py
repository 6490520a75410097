"""log p(c) of records once more: value by value, in plain Python and without the library's kernels.

Of the library it takes how a raw value is read (``validate``) and how far numbers may lie apart (``scale``). Sums of
logarithms are rounded where the formulas say so, to 2⁻²⁰; ``exact=True`` leaves that out.
"""

import math
from collections import Counter

import partita as pt
from tests.helpers import oracle
from tests.helpers.stretch import Stretch

LEVELS, BOUNDS = 8, [0.15, 0.3, 0.45, 0.6, 0.75, 0.9]
SHARPNESS, COHESION, SHAPE = 0.3, 0.5, 0.5
UNKNOWN = [0.9, 0.04, 0.03, 0.01, 0.008, 0.006, 0.004, 0.002]


KNOWN = {}


def rounded(x):
    """To a multiple of 2⁻²⁰."""
    return math.floor(x * 2**20 + 0.5) / 2**20


# ---------------------------------------------------------------------- how alike values are


def trigrams(value):
    return Counter(
        f" {word} "[k : k + 3] for word in value[:1000].split(" ") for k in range(max(len(word), 1))
    )


class Compared:
    """An attribute's values: how alike they are to each other, and to those of other entities."""

    def __init__(self, attribute):
        self.attribute = attribute
        self.values = list(attribute.corpus.counts)
        self.holders = Counter(part for value in self.values for part in trigrams(value))
        once, twice = (sum(round(n) == k for n in attribute.corpus.counts.values()) for k in (1, 2))
        self.discount = (once + 4) / (once + 2 * twice + 5)
        self.overall, self.vectors = UNKNOWN, {}
        if len(attribute.references) > 1:
            total = [sum(of) for of in zip(*map(self.other_references, range(len(attribute.references))), strict=True)]
            self.overall = [(n + p) / (sum(total) + 1.0) for n, p in zip(total, UNKNOWN, strict=True)]
        self.known = {}

    @classmethod
    def of(cls, attribute):
        """That of an attribute, made once: there are many clusters."""
        if id(attribute) not in KNOWN:
            KNOWN[id(attribute)] = cls(attribute)  # which keeps the attribute, so no other gets its id
        return KNOWN[id(attribute)]

    def vector(self, value):
        """Trigrams, rare ones with more weight, of length 1."""
        if value not in self.vectors:
            self.vectors[value] = self._vector(value)
        return self.vectors[value]

    def _vector(self, value):
        found = {
            part: (1 + math.log(n)) * (1 + math.log((1 + len(self.values)) / (1 + self.holders[part])))
            for part, n in trigrams(value).items()
        }
        length = math.hypot(*found.values())
        return {part: weight / length for part, weight in found.items()}

    def similarity(self, v, w):
        """Between 0 and 1, the bounds of the levels."""
        if isinstance(self.attribute, pt.Text):
            one, other = self.vector(v), self.vector(w)
            return sum(weight * other.get(part, 0.0) for part, weight in one.items())
        if isinstance(self.attribute, pt.Number):
            return 1.0 - abs(float(v) - float(w)) / self.attribute.scale
        return 0.0

    def level(self, v, w):
        """Of two values that need not differ: what a reference is counted as."""
        return LEVELS - 1 if v == w else sum(self.similarity(v, w) > bound for bound in BOUNDS)

    def other_references(self, k):
        """How many of the others are alike to a reference to each degree."""
        references = self.attribute.references
        return self.strangers(references[k], references[:k] + references[k + 1 :])

    def strangers(self, value, references=None):
        """How many references are alike to a value to each degree, without those of its own entity."""
        counts = Counter(
            self.level(value, other) for other in (self.attribute.references if references is None else references)
        )
        kin = [self.attribute.kin * m for m in self.attribute.agreement]
        return [max(counts[level] - kin[level], 0.0) for level in range(LEVELS)]

    def u(self, value):
        """How often values of other entities are alike to a value, by level."""
        if value not in self.known:
            counts = self.strangers(value)
            shares = [
                (n + SHAPE) / (sum(counts) + SHAPE / p) for n, p in zip(counts, self.overall, strict=True)
            ]
            holders = self.attribute.corpus.counts
            if holders:
                shares[-1] = (max(holders.get(value, 0) - 1, 1) - self.discount) / (sum(holders.values()) + 1)
            self.known[value] = shares
        return self.known[value]

    def evidence(self, v, w):
        """log m − log u: that two values are of one entity, or of two."""
        at = LEVELS - 1 if v == w else self.level(v, w)
        return math.log(self.attribute.agreement[at]) - math.log(max(self.u(v)[at], self.u(w)[at]))


# ---------------------------------------------------------------------- log p(c)


def attribute_evidence(said, attribute, exact=False):
    """What the values of an attribute say: ``said`` has a list of them for each record, each once."""
    if isinstance(attribute, Stretch):
        return attribute.log_p([value for values in said for value in values])
    compared, near = Compared.of(attribute), (lambda x: x) if exact else rounded
    listed = [(row, value) for row, values in enumerate(said) for value in values]
    n = len(listed)
    if n < 2:
        return 0.0
    totals, times = Counter(), Counter(value for _, value in listed)
    for i, (row, v) in enumerate(listed):
        for j, (other, w) in enumerate(listed):
            if i != j:
                totals[v] += 1.0 if row == other else near(math.exp(SHARPNESS * compared.evidence(v, w)))
    logs = sum(times[v] * near(math.log(totals[v] / times[v])) for v in times) - n * near(math.log(n - 1))
    cohesion = (n / 2) ** (COHESION * (1 - attribute.weight))
    return attribute.weight * (1 - 1 / n) * cohesion * logs / SHARPNESS


def record(records, model, exact=False):
    """log p(c) under ``pt.Record`` of fragments as they are given."""
    names = [name for name, attribute in model.attributes.items() if attribute is not None]
    said = [[set() for _ in records] for _ in names]
    for row, fragment in enumerate(model.validate(records) if records else []):
        for a, value in fragment.pairs:
            said[a][row].add(value)
    mentioned = [[bool(values) for values in of] for of in said]
    return presence(mentioned, names, model) + sum(
        attribute_evidence(of, model.attributes[name], exact) for name, of in zip(names, said, strict=True)
    )


def presence(mentioned, names, model):
    """An entity is of one of some types; what it mentions, of each, draw by draw."""
    if model.rate == 0:
        return 0.0
    types = model.types or [(1.0, model.presence or {})]
    terms = [math.log(weight) + mentions(mentioned, names, model.rate, shares) for weight, shares in types]
    return max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))


def mentions(mentioned, names, b, shares):
    """Numbers of mentions are Poisson, with rates of the entity's own from Gamma(b·f, b)."""
    total = 0.0
    for name, of_records in zip(names, mentioned, strict=True):
        shape, rate = b * (shares.get(name) or 1e-3), b
        for said in of_records:  # negative binomial, one record after the other
            if said:
                total += math.log(shape / (rate + 1))
            total += shape * math.log(rate / (rate + 1))
            shape, rate = shape + said, rate + 1
    return total


class Scores(oracle.Scores):
    """Of clusters of fragments, which are no rows of numbers."""

    def __init__(self, model, X, alpha):
        self.model, self.X, self.alpha, self.known = model, X, alpha, {frozenset(): 0.0}

    def marginal(self, cluster):
        if cluster not in self.known:
            self.known[cluster] = record([self.X[x] for x in sorted(cluster)], self.model)
        return self.known[cluster]
