"""log p(c) of texts and records once more, draw by draw, in plain Python and without the library's code.

A *record* is a dict from attribute to a list of values that are folded already. Every factor of p(c) is a
product over draws in the order given, each with the counts of those before it.
"""

import math
from collections import Counter, defaultdict

import partita as pt
from tests.helpers import oracle
from tests.helpers.naive_values import naive_numbers, naive_values

FIRST, LAST = "\x02", "\x03"


# ---------------------------------------------------------------------- what is common


class Shares:
    """Probabilities of what occurs twice or more, and of all the rest together."""

    def __init__(self, counts):
        self.counts, total = counts, sum(counts.values())
        once = sum(n for n in counts.values() if n < 2)
        self.rest = (max(once, 1) + 1) / (total + 2)
        self.share = {thing: (1 - self.rest) * n / total for thing, n in counts.items() if n >= 2}

    def log(self, thing):
        return math.log(self.share.get(thing, self.rest))


def word_counts(counts):
    """In how many values each word occurs, each value as often as it does."""
    found = Counter()
    for value, n in counts.items():
        for word in set(value.split(" ")):
            found[word] += n
    return found


def witten_bell(words, order):
    """The function q(letter | context) of an interpolated n-gram model, each word counted once."""
    after = defaultdict(Counter)
    for word in words:
        text = FIRST * (order - 1) + word + LAST
        for at in range(order - 1, len(text)):
            for length in range(order):
                after[text[at - length : at]][text[at]] += 1

    def q(letter, context):
        seen = after.get(context, {})
        if not context:
            return (seen.get(letter, 0) + (len(seen) + 1) * 1e-3) / (sum(seen.values()) + len(seen) + 1)
        lower = q(letter, context[1:])
        return (seen.get(letter, 0) + len(seen) * lower) / (sum(seen.values()) + len(seen)) if seen else lower

    return q


# ---------------------------------------------------------------------- draws


def urn(draws, strength, log_base):
    """Blackwell and MacQueen: a repeat in proportion to its count, else something new."""
    total, seen = 0.0, Counter()
    for k, thing in enumerate(draws):
        if seen[thing]:
            total += math.log(seen[thing] / (k + strength))
        else:
            total += math.log(strength / (k + strength)) + log_base(thing)
        seen[thing] += 1
    return total


def spelling(words, order, weight):
    """Letters of words in turn, those of each context from an urn; ``weight(letter, context)`` is s·q."""
    total, letters, contexts = 0.0, Counter(), Counter()
    for word in words:
        text = FIRST * (order - 1) + word + LAST
        for at in range(order - 1, len(text)):
            context, letter = text[at - order + 1 : at], text[at]
            own, whole = weight(letter, context)
            total += math.log((own + letters[context, letter]) / (whole + contexts[context]))
            letters[context, letter] += 1
            contexts[context] += 1
    return total


def category(values, attribute):
    counts = attribute.corpus.counts
    total = sum(counts.values()) + 1 + 0.5 * (len(counts) + 1)
    return urn(values, attribute.theta, lambda value: math.log((counts.get(value, 1) + 0.5) / total))


def text(values, attribute):
    """Urn of values, words of composed values given common ones, letters of rare words given common ones."""
    counts, split = attribute.corpus.counts, attribute.split
    shares, words = Shares(counts), Shares(word_counts(counts))
    lengths = Counter(value.count(" ") + 1 for value in counts)
    order, strength = attribute.letters, attribute.strength
    q = witten_bell(word_counts(counts) if split else counts, order)

    def is_common(value):
        return split and value in shares.share

    def value_base(value):
        if is_common(value):
            return shares.log(value)
        n = value.count(" ") + 1
        return (
            shares.log(value) + math.log((lengths[n] + 2.0 ** -min(n, 60)) / (len(counts) + 1))
            if split
            else 0.0
        )

    def word_base(word):
        return words.log(word) if split else 0.0

    def words_of(some):
        return [word for value in some for word in (value.split(" ") if split else [value])]

    def weight(letter, context):
        return strength * q(letter, context), strength

    distinct = list(dict.fromkeys(values))
    given = words_of(value for value in distinct if is_common(value))
    drawn = given + words_of(value for value in distinct if not is_common(value))
    known = list(dict.fromkeys(word for word in drawn if split and word in words.share))
    every = known + list(dict.fromkeys(word for word in drawn if word not in known))
    return (
        urn(values, attribute.theta, value_base)
        + urn(drawn, attribute.phi, word_base)
        - urn(given, attribute.phi, word_base)
        + spelling(every, order, weight)
        - spelling(known, order, weight)
    )


def presence(records, model):
    """An entity is of one of some types; what it mentions, of each, draw by draw."""
    if model.rate == 0:
        return 0.0
    types = model.types or [(1.0, model.presence or {})]
    terms = [math.log(weight) + mentions(records, model, shares) for weight, shares in types]
    return max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))


def mentions(records, model, shares):
    """Numbers of mentions are Poisson, with rates of the entity's own from Gamma(b·f, b)."""
    b, total = model.rate, 0.0
    for name, attribute in model.attributes.items():
        if attribute is None:
            continue
        shape, rate = b * (shares.get(name) or 1e-3), b
        for record in records:  # negative binomial, one record after the other
            if record.get(name):
                total += math.log(shape / (rate + 1))
            total += shape * math.log(rate / (rate + 1))
            shape, rate = shape + bool(record.get(name)), rate + 1
    return total


def record(records, model):
    """log p(c) under ``pt.Record``."""
    total = presence(records, model)
    for name, attribute in model.attributes.items():
        values = [value for one in records for value in dict.fromkeys(one.get(name, []))]
        if attribute is not None:
            total += ATTRIBUTES[type(attribute)](values, attribute)
    return total


ATTRIBUTES = {  # log p of all values of a cluster's records
    pt.Category: category,
    pt.Text: text,
    pt.Date: text,
    pt.Value: lambda values, attribute: naive_values(attribute, values),
    pt.Number: lambda values, attribute: naive_numbers(attribute, values),
}


def ngram(texts, model):
    """log p(c) under ``pt.Ngram``, of texts that are folded already."""
    counts = model.counts or {}
    alphabet = {gram[-1] for gram in counts} | {LAST, "\ufffd"}
    if counts:
        texts = ["".join(letter if letter in alphabet else "\ufffd" for letter in text) for text in texts]

    def weight(letter, context):
        seen = sum(n for gram, n in counts.items() if gram[:-1] == context)
        size = len(alphabet) if counts else 100
        return model.concentration * (1 + counts.get(context + letter, 0)), model.concentration * (
            size + seen
        )

    return spelling(texts, model.n, weight)


class Scores(oracle.Scores):
    """Of clusters of texts or records, which are no rows of numbers."""

    def __init__(self, model, X, alpha):
        self.X, self.alpha, self.known = X, alpha, {frozenset(): 0.0}
        self.own = record if isinstance(model, pt.Record) else ngram
        self.model = model

    def marginal(self, cluster):
        if cluster not in self.known:
            self.known[cluster] = self.own([self.X[x] for x in sorted(cluster)], self.model)
        return self.known[cluster]
