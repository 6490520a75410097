"""Clustering by a language model: the network as a knowledge base keeps it.

The network scores clusters; the record model that the knowledge base has learnt proposes which, has a say in
their scores, gives the keys, and explains. The store knows the network by its name, a hash of its weights,
and what else is to be known before it is asked: so what the store holds can be read without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partita.models.black_box import BlackBox
from partita.models.records.record import Record
from partita.neural import named as _networks
from partita.neural.named import WEIGHTS, loaded, loaded_name

RECORD, JSONLM = "record", "jsonlm"  # the models there are, beside files of weights


def model_named(given: str) -> str:
    """A model as the settings keep it, a file by its whole path; ValueError if there is none of that name."""
    if given.endswith(WEIGHTS):
        return str(Path(given).expanduser().resolve())
    if given not in (RECORD, JSONLM):
        raise ValueError(
            f"there is no model {given!r}: choose {RECORD!r}, {JSONLM!r}, or a file of weights (*{WEIGHTS})"
        )
    return given


@dataclass(frozen=True)
class Network:
    """What a store keeps of a language model; a function from clusters to log-likelihoods."""

    model: str  # JSONLM, or a file of weights
    name: str  # a hash of the weights
    lookahead: int
    pool: dict[str, Any] = field(default_factory=dict)  # of a black box in which records have a say

    @classmethod
    def of(cls, model: str) -> Network:
        """The network as it is now; ImportError says what to install, OSError that there is no such file."""
        found = _networks.Network(*where(model))
        return cls(model, found.name, found.lookahead, found.pool)

    def __call__(self, clusters: list[list[Any]]) -> Any:
        """Ask it; ValueError if the weights are not those that the clusterings were made with."""
        if (found := loaded_name(*where(self.model))) != self.name:
            raise ValueError(
                f"the language model has other weights ({found}) than those that this knowledge base was "
                f"clustered with ({self.name}): relearn clusters it anew with the present ones"
            )
        return loaded(*where(self.model))(clusters)


def where(model: str) -> tuple[str, str]:
    """Which network a model of the settings is, and where it is from."""
    return "JsonLM", "" if model == JSONLM else model


def black_box(network: Network, record: Record) -> BlackBox:
    """The network as a model, with records to propose what it is asked and to have a say."""
    box = BlackBox(network, surrogate=record, **network.pool)
    box.check(1)
    return box
