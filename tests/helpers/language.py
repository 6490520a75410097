"""A language model that knows no more than records: whatever it clusters must be as records cluster it."""

import numpy as np
from scipy.special import gammaln

import partita.neural
from partita.models.records.record import Record
from partita.smc.engine import Engine
from partita.smc.state.state import Settings
from tests.helpers.networks import forget


class RecordLM:
    """The log-likelihoods of a record model, and whatever is added to them."""

    lookahead = 4

    def __init__(self, record, name="records 1", extra=lambda cluster: 0.0):
        self.record, self.name, self.extra = record, name, extra
        self.asked = 0
        self.scoring = Record.from_json(record.to_json())  # which remembers the values that it has seen
        self.scoring.check(1)

    def __call__(self, clusters):
        self.asked += len(clusters)
        X = self.scoring.validate([fragment for cluster in clusters for fragment in cluster])
        engine = Engine(self.scoring, Settings(1), 1, 2, 0.0, 0)  # to the last bit as the sampler scores
        engine.store(engine.encode(X))
        sizes = np.array([len(cluster) for cluster in clusters])
        sets = np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])
        extra = np.array([self.extra(cluster) for cluster in clusters])
        return engine.scores(sets) - gammaln(sizes) + extra


def learnt(rows):
    """What a knowledge base learns from fragments."""
    given = [row["properties"] for row in rows]
    return Record.infer(given).fit_prior(given)


def install(monkeypatch, model, files=None):
    """Let this be the language model that comes with Partita, and these those of files."""
    forget()

    class Pretrained:
        @staticmethod
        def pretrained():
            return model

        @staticmethod
        def load(path):
            return (files or {})[path.name]

    monkeypatch.setitem(vars(partita.neural), "JsonLM", Pretrained)
    return model
