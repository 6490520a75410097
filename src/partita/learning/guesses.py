"""What records are taken to be before they have taught anything: guesses to begin the turns of learning with.

A learner, here and below, is a :class:`partita.learning.learner.Learner`: a sample with all its values compared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.models.records.kinds.attribute import SILENT

if TYPE_CHECKING:
    from partita.learning.learner import Learner

REPEATED = 0.6  # of an entity's values are the same
CORRELATION = 0.1  # of two columns, if nothing is known
LEAST = 0.3  # of the usual weight of an attribute at the first turn
REFERENCES = 1000  # entities whose values are kept to compare with


def first_guess(model: Any, learner: Learner, occurrences: list[Counter[str]], others: float) -> Any:
    """The model before any clusters are known: a record has so many ``others`` of its entity.

    So many that share a value are no coincidence, and as many references are no strangers.
    """
    names, attributes = model._modelled()
    mentioned, fitted = learner.present.mean(axis=0), dict(model.attributes)
    silent = learner.survey.silent
    usual = 1.0 / (1.0 + CORRELATION * max(float(mentioned[~silent].sum()) - 1.0, 0.0))
    for a, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        own = others * mentioned[a] * REPEATED
        chosen = references([Counter({value: 1}) for value in occurrences[a].elements()])
        fitted[name] = replace(
            attribute.with_corpus(
                {
                    value: 1.0 if learner.says_one_thing else max(n - own, 2.0)
                    for value, n in occurrences[a].items()
                }
            ),
            weight=SILENT if silent[a] else usual,
            references=chosen,
            kin=len(chosen) * (1.0 + others) / learner.n,
        )
    presence = dict(zip(names, mentioned.tolist(), strict=True))
    return type(model)(fitted, model.rate, presence, None, 1.0 + others)


def careful(guess: Any, learner: Learner) -> Any:
    """The first guess, with columns that count for as little as if all that agree in one were strangers.

    That is what a family is that shares an address, a telephone and a name; so only those who agree in nearly all are
    joined at first, and these teach what of it is common among strangers. Entities are as small as evidence is weak.
    """
    names, attributes = guess._modelled()
    expected = learner.present.mean(axis=0)
    usual = np.array([attribute.weight for attribute in attributes])
    among_all = learner.prior(np.arange(learner.n), np.inf)[1]
    weights = np.maximum(among_all, LEAST * usual)
    share = min(float(weights @ expected) / max(float(usual @ expected), 1e-9), 1.0)
    fitted = guess.attributes | {
        name: replace(attribute, weight=float(weight))
        for name, attribute, weight in zip(names, attributes, weights, strict=True)
    }
    return type(guess)(fitted, guess.rate, guess.presence, None, 1.0 + (guess.size - 1.0) * share**2)


def bold(current: Any, guess: Any) -> Any:
    """A model that has learnt, but takes values to be as rare and entities to be as large as at the first guess.

    Where values of one entity are still apart they look common, which keeps them apart. By now it is known what tells
    strangers apart who share something, so that these stay apart.
    """
    fitted = {
        name: attribute
        if attribute is None
        else replace(
            attribute,
            corpus=guess.attributes[name].corpus,
            references=guess.attributes[name].references,
            kin=guess.attributes[name].kin,
        )
        for name, attribute in current.attributes.items()
    }
    return type(current)(fitted, current.rate, current.presence, current.types, guess.size)


def references(clusters: list[Counter[str]]) -> tuple[str, ...]:
    """Values of entities, about as many of each."""
    generator = np.random.default_rng(0)
    each = -(-REFERENCES // max(len(clusters), 1))
    found: list[str] = []
    for c in generator.permutation(len(clusters)).tolist():
        values = sorted(clusters[c])
        found += [values[k] for k in generator.permutation(len(values))[:each].tolist()]
        if len(found) >= REFERENCES:
            break
    return tuple(found[:REFERENCES])
