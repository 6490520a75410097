"""Two knowledge bases, compared."""

import numpy as np
import pytest


def assert_same(kb, other):
    """Two knowledge bases hold the same: entities with their ids, events, and probabilities."""
    one, two = ({e.id: e for e in each.entities()} for each in (kb, other))
    assert one.keys() == two.keys()
    for id, entity in one.items():
        assert (entity.name, entity.fragments) == (two[id].name, two[id].fragments)
        assert entity.properties == two[id].properties
    events = [[(e.kind, e.entity, e.other, e.fragment) for e in each.events()] for each in (kb, other)]
    assert events[0] == events[1]
    states = [state_of(each) for each in (kb, other)]
    assert states[0].keys() == states[1].keys()
    for slot, (members, cells, scores) in states[0].items():
        assert (members, cells) == states[1][slot][:2]
        assert scores == pytest.approx(states[1][slot][2], abs=1e-9)


def state_of(kb):
    """The sampler's state as it is stored."""
    from partita.kb.clustering import joined
    from partita.kb.store.sampler import read_subproblems

    with kb.store.reading() as connection:
        found = {}
        for each in read_subproblems(connection):
            packed = joined([each], 0, np.empty(0, np.int64))
            parts = (packed["members"].tolist(), packed["cells"].tolist(), packed["scores"].tolist())
            found[each.slot] = parts
        return found
