"""log p(c) of records once more: value by value, in plain Python and without the library's kernels.

Of the library it takes how a raw value is read (``validate``) and how far numbers may lie apart (``scale``).
"""

import itertools
import math
from collections import Counter

import numpy as np

import partita as pt
from partita._core.hashing import code_of
from tests.helpers import oracle
from tests.helpers.stretch import Stretch

LEVELS, BOUNDS = 8, [0.15, 0.3, 0.45, 0.6, 0.75, 0.9]
SHARPNESS, COLUMN, LEAST_COLUMNS, GROWTH, SHAPE, CROWDING = 0.6, 0.5, 0.5, 0.65, 0.5, 0.3
MOST = 128  # different values for which all trees are counted
UNKNOWN = [0.9, 0.04, 0.03, 0.01, 0.008, 0.006, 0.004, 0.002]


KNOWN = {}


# ---------------------------------------------------------------------- how alike values are


def trigrams(value):
    return Counter(
        f" {word} "[k : k + 3] for word in value[:1000].split(" ") for k in range(max(len(word), 1))
    )


def discount(holders):
    """d: the more values just one entity has, of those that one or two have, the nearer to 1."""
    once, twice = sum(n < 1.5 for n in holders), sum(1.5 <= n < 2.5 for n in holders)
    return (once + 4) / (once + 2 * twice + 5)


class Compared:
    """An attribute's values: how alike they are to each other, and to those of other entities."""

    def __init__(self, attribute):
        self.attribute = attribute
        self.values = list(attribute.corpus.counts)
        self.holders = Counter(part for value in self.values for part in trigrams(value))
        self.discount = discount(attribute.corpus.counts.values())
        self.overall, self.vectors = UNKNOWN, {}
        if len(attribute.references) > 1:
            total = [
                sum(of)
                for of in zip(*map(self.other_references, range(len(attribute.references))), strict=True)
            ]
            self.overall = [(n + p) / (sum(total) + 1.0) for n, p in zip(total, UNKNOWN, strict=True)]
        self.known, self.pairs = {}, {}

    @classmethod
    def of(cls, attribute):
        """That of an attribute, made once: there are many clusters."""
        if id(attribute) not in KNOWN:
            KNOWN[id(attribute)] = cls(attribute)  # which keeps the attribute, so no other gets its id
        return KNOWN[id(attribute)]

    def vector(self, value):
        """Trigrams, rare ones with more weight, of length 1 but for the steps that weights come in."""
        if value not in self.vectors:
            self.vectors[value] = self._vector(value)
        return self.vectors[value]

    def _vector(self, value):
        found = {
            part: (1 + math.log(n)) * (1 + math.log((1 + len(self.values)) / (1 + self.holders[part])))
            for part, n in trigrams(value).items()
        }
        length = math.hypot(*found.values())
        return {part: round(weight / length * 2**24) / 2**24 for part, weight in found.items()}

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
            self.level(value, other)
            for other in (self.attribute.references if references is None else references)
        )
        kin = [self.attribute.kin * m for m in self.attribute.agreement]
        return [max(counts[level] - kin[level], 0.0) for level in range(LEVELS)]

    def u(self, value):
        """How often values of other entities are alike to a value, by level."""
        if self.attribute.by_chance:
            return self.attribute.by_chance
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
        if (v, w) not in self.pairs:
            at = self.level(v, w)
            self.pairs[v, w] = math.log(self.attribute.agreement[at]) - math.log(
                max(self.u(v)[at], self.u(w)[at])
            )
        return self.pairs[v, w]


# ---------------------------------------------------------------------- log p(c)


def is_linked(model):
    """Whether average linkage stands for the trees: some attribute says how alike strangers are by chance."""
    return any(attribute is not None and attribute.by_chance for attribute in model.attributes.values())


def crowding(model):
    """κ: what of the Dirichlet process's lgamma(|c|) is taken back."""
    return 1.0 if is_linked(model) else CROWDING if model.size is None else max(CROWDING, 1.0 / model.size)


def sharpness(model):
    """q: it grows with the weights of the columns, which are the attributes that half of the fragments mention."""
    if is_linked(model):
        return 0.0
    if sum(attribute is not None for attribute in model.attributes.values()) == 1:
        return 1.0
    total = 0.0
    for name, attribute in model.attributes.items():
        if attribute is None:
            continue
        is_column = name != "*" if model.presence is None else model.presence.get(name, 0.0) >= COLUMN
        total += attribute.weight if is_column else 0.0
    return SHARPNESS * max(total, LEAST_COLUMNS) ** GROWTH


def labelled_trees(n):
    """Every tree on n nodes, as a list of edges: one for each sequence of n − 2 nodes (Prüfer 1918)."""
    for code in itertools.product(range(n), repeat=n - 2):
        left, edges = [1 + code.count(node) for node in range(n)], []
        for node in code:
            leaf = left.index(1)
            edges.append((leaf, node))
            left[leaf] -= 1
            left[node] -= 1
        edges.append(tuple(node for node in range(n) if left[node] == 1))
        yield edges


def log_mean_by_trees(weights):
    """log of the mean over all trees of the product of their edges' weights, tree by tree."""
    n = len(weights)
    products = [math.prod(weights[i][j] for i, j in edges) for edges in labelled_trees(n)]
    assert len(products) == n ** (n - 2)
    return math.log(math.fsum(products) / len(products))


def log_mean_by_determinant(weights):
    """The same by Kirchhoff's theorem, with more digits than the library has: weak ties are differences here."""
    weights = np.array(weights, np.longdouble)
    np.fill_diagonal(weights, 0.0)
    reduced = (np.diag(weights.sum(axis=1)) - weights)[1:, 1:]
    total = 0.0
    for k in range(len(reduced)):
        total += float(np.log(reduced[k, k]))
        reduced[k + 1 :, k:] -= np.outer(reduced[k + 1 :, k] / reduced[k, k], reduced[k, k:])
    return total - (len(weights) - 2) * math.log(len(weights))


def mean_log_by_pairs(weights):
    """The mean over all trees of the logarithm: they have as many edges as there are nodes but one, any pair alike."""
    pairs = [math.log(weights[i][j]) for i, j in itertools.combinations(range(len(weights)), 2)]
    return (len(weights) - 1) * math.fsum(pairs) / len(pairs)


def linked_greedily(evidence):
    """Average linkage: the two groups with the highest mean are joined, until there is one; the sum of these means."""
    groups, total = [[k] for k in range(len(evidence))], 0.0
    while len(groups) > 1:

        def mean(pair):
            pairs = list(itertools.product(*pair))
            return math.fsum(evidence[i][j] for i, j in pairs) / len(pairs)

        best = max(itertools.combinations(groups, 2), key=mean)
        total += mean(best)
        groups = [group for group in groups if group not in best] + [best[0] + best[1]]
    return total


def linked_by_chains(evidence):
    """The same where no two means are equal; else those are joined to whom a chain of nearest ones leads.

    Step by step as the library does it, for of equal means rounding makes one larger.
    """
    said = {(i, j): evidence[i][j] for i in range(len(evidence)) for j in range(len(evidence))}
    sizes, chain, total = dict.fromkeys(range(len(evidence)), 1), [], 0.0
    while len(sizes) > 1:
        chain = chain or [min(sizes)]
        before = chain[-2] if len(chain) > 1 else None
        others = sorted(sizes.keys() - {chain[-1]}, key=lambda k: (k != before, k))
        nearest = max(others, key=lambda k: said[chain[-1], k])  # the first of those as near
        if nearest != before:
            chain.append(nearest)
            continue
        low, high = sorted(chain[-2:])
        chain, total = chain[:-2], total + said[low, high]
        both = sizes[low] + sizes[high]
        for k in sizes.keys() - {low, high}:
            mean = (sizes[low] * said[low, k] + sizes[high] * said[high, k]) / both
            said[low, k] = said[k, low] = mean
        sizes[low] = both
        del sizes[high]
    return total


def linked_evidence(listed, compared):
    """What average linkage says of values: e each time that one is repeated, and what is said of the different ones."""
    different = sorted(set(listed), key=lambda value: code_of(value.encode("utf-8", "surrogatepass")))
    repeated = sum((listed.count(value) - 1) * compared.evidence(value, value) for value in different)
    return repeated + linked_by_chains([[compared.evidence(v, w) for w in different] for v in different])


def attribute_evidence(said, attribute, q):
    """What the values of an attribute say: ``said`` has a list of them for each record, each once."""
    listed = [value for values in said for value in values]
    if isinstance(attribute, Stretch):
        return attribute.log_p(listed)
    if len(listed) < 2:
        return 0.0
    compared = Compared.of(attribute)
    if q == 0.0:
        return attribute.weight * linked_evidence(listed, compared)
    weights = [[math.exp(q * compared.evidence(v, w)) for w in listed] for v in listed]
    log_mean = log_mean_by_trees if len(listed) <= 5 else log_mean_by_determinant
    if len(set(listed)) > MOST:
        log_mean = mean_log_by_pairs
    return attribute.weight * log_mean(weights) / q


def record(records, model):
    """log p(c) under ``pt.Record`` of fragments as they are given."""
    names = [name for name, attribute in model.attributes.items() if attribute is not None]
    said = [[set() for _ in records] for _ in names]
    for row, fragment in enumerate(model.validate(records) if records else []):
        for a, value in fragment.pairs:
            said[a][row].add(value)
    mentioned = [[bool(values) for values in of] for of in said]
    crowd = crowding(model) * math.lgamma(len(records)) if records else 0.0
    return (
        presence(mentioned, names, model)
        - crowd
        + sum(
            attribute_evidence(of, model.attributes[name], sharpness(model))
            for name, of in zip(names, said, strict=True)
        )
    )


def presence(mentioned, names, model):
    """An entity is of one of some types; what it mentions, of each, draw by draw."""
    if model.rate == 0:
        return 0.0
    if model.presence is not None:  # what none has mentioned is no evidence
        heard = [bool(model.presence.get(name)) for name in names]
        names, mentioned = ([one for one, h in zip(of, heard, strict=True) if h] for of in (names, mentioned))
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
