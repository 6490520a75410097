"""What values are compared by, kept in the store: the same as if every process found it anew."""

import numpy as np
import pytest
import sqlalchemy as sa

import partita as pt
import partita.kb
from partita._core.hashing import code_of
from partita.kb.store import tables
from partita.kb.values import KnownValues, packed, unpacked, without
from tests.helpers.people import fragments

ROWS, _ = fragments(24)
SAID = [
    {"name": ["Ada Lovelace", "A. Lovelace"], "born": "1815-12-10", "height": 1.65},
    {"name": "Charles Babbage", "born": "1791-12-26"},
    {},
    {"name": "Ada Lovelace", "height": 1.7},
]


def new_model():
    model = pt.Record({"name": pt.Text(), "born": pt.Date(), "height": pt.Number()}).fit_prior(SAID * 3)
    model.check(1)
    return model


def encoded_by(model, said):
    encoded = model.encode(model.validate(said))
    model.family(1)
    return encoded


def said_in(model, encoded):
    """Of each fragment the values that it says, by what they are compared by."""
    lengths, features = model.features(encoded)
    values = model.values_of(features)
    grams = np.split(values.grams, np.cumsum(values.lengths)[:-1])
    weights = np.split(values.weights, np.cumsum(values.lengths)[:-1])
    rows = zip(values.owner, values.rank, values.number, values.log_u.tolist(), grams, weights, strict=True)
    listed = iter([(int(a), int(b), float(c), d, e.tolist(), f.tolist()) for a, b, c, d, e, f in rows])
    return [sorted(next(listed) for _ in range(n)) for n in lengths]


def test_what_is_kept_is_what_another_process_would_find():
    model = new_model()
    known = KnownValues(model)
    encoded_by(model, [{"name": "Somebody who was asked for"}])  # and is not to be kept
    said = known.number(encoded_by(model, SAID[:2])) + known.number(encoded_by(model, SAID[2:]))
    pieces = list(known.unsaved())
    other = new_model()
    again = KnownValues(other)
    again.take_in(pieces, known.next_number)
    recalled = again.recall(said)
    assert said_in(other, recalled) == said_in(model, encoded_by(model, SAID))
    assert said_in(other, encoded_by(other, SAID)) == said_in(other, recalled)  # and known by what it says
    assert again.number(encoded_by(other, SAID)) == said  # so that nothing is kept twice
    assert list(again.unsaved()) == []
    assert known.next_number == 7 == sum(len(unpacked(piece.body).owner) for piece in pieces)


def test_numbers_that_nobody_has_are_refused():
    model = new_model()
    known = KnownValues(model)
    [said, *_] = known.number(encoded_by(model, SAID))
    with pytest.raises(ValueError, match="no value"):
        known.recall([said, (99).to_bytes(4, "little")])
    with pytest.raises(ValueError, match="no value"):
        known.recall([(-2).to_bytes(4, "little", signed=True)])
    with pytest.raises(ValueError, match="cannot be read"):
        unpacked(b"nothing")


def test_values_without_some():
    model = new_model()
    values = model.values_of(np.unique(model.features(encoded_by(model, SAID))[1]))
    rest = unpacked(packed(without(values, np.arange(len(values.owner)) == 1)))
    assert rest.owner[1] == -1
    assert rest.rank[1] == 0
    assert rest.lengths[1] == 0
    assert rest.lengths.sum() == len(rest.grams) == values.lengths.sum() - values.lengths[1]
    assert rest.rank[2:].tolist() == values.rank[2:].tolist()


@pytest.fixture
def path(tmp_path):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS)
        kb.add([{"id": "own", "name": "Zenobia Xylander", "born": "1901-02-03"}])
    return tmp_path / "kb.db"


def ranks_in(kb):
    """What stands for the values that are kept."""
    with kb.store.reading() as connection:
        bodies = connection.scalars(sa.select(tables.vocabulary.c.body)).all()
    return {rank for body in bodies for rank in unpacked(body).rank.tolist()}


def test_values_are_erased_once_nobody_says_them(path):
    own = code_of(b"xylander zenobia"), code_of(b"zenobia xylander")
    with partita.kb.open(path) as kb:
        assert ranks_in(kb) & set(own)
        kb.add([{"id": "too", "name": "Zenobia Xylander"}])
        kb.remove("own")
        assert ranks_in(kb) & set(own)  # for another says so too
    with partita.kb.open(path) as kb:
        kb.remove("too")
        assert not ranks_in(kb) & set(own)
    with partita.kb.open(path) as kb:  # and what is said again is kept again
        kb.add([{"id": "own", "name": "Zenobia Xylander", "born": "1901-02-03"}])
        assert ranks_in(kb) & set(own)
        before = kb.labels()
    with partita.kb.open(path) as kb:
        assert kb.labels() == before


def test_what_is_asked_about_is_not_kept(path):
    with partita.kb.open(path) as kb:
        before = ranks_in(kb)
        kb.match({"name": "Somebody Unknown"})
        kb.add([{"id": "new", "name": "Zenobia Xylander"}])
        assert ranks_in(kb) == before


def test_nothing_is_read_again_to_cluster(path, monkeypatch):
    """Or else the first fragments after opening would wait for their neighbours to be read."""
    with partita.kb.open(path) as kb, monkeypatch.context() as patched:
        asked = kb.match({"name": "Zenobia Xylander"})
        patched.setattr(pt.Record, "read", lambda *given: pytest.fail("read again"))
        kb.refine()
    assert asked[0].name == "Zenobia Xylander"


def test_what_is_told_is_what_is_held_of_what_is_read():
    attributes = {
        "name": pt.Text(missing=("n/a",)),
        "likes": pt.Category(separator="; "),
        "*": pt.Text(),
        "x": None,
    }
    said = [
        {"name": ["n/a", "Ada"], "likes": ["tea; cake"], "other": ["a", "b"], "x": ["1"]},
        {"name": ["n/a"], "likes": ["tea", "cake; tea"]},
        {},
    ]
    for model in (pt.Record(attributes), pt.Record({"*": None} | {"name": pt.Text()})):
        assert model.told(said) == model.held(model.read(said))
