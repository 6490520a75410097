"""Parts of texts in kernels: those of the definition in Python, for any text; and of a kind of one's own."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.models.records.comparisons.parts import STEP, letters_of
from partita.models.records.fragments import check_fragment

texts = st.lists(
    st.text(st.sampled_from("ab  é\U0001f600"), min_size=0, max_size=40) | st.text(max_size=30), max_size=6
)


@given(texts, texts)
def test_parts_are_those_of_the_definition_to_the_last_bit(corpus, values):
    attribute = pt.Text().with_corpus(dict.fromkeys(corpus, 1.0))
    parts = attribute.parts(values)
    for value, first, last in zip(values, parts.first, parts.last, strict=True):
        grams = parts.grams[first:last]
        assert (np.diff(grams) > 0).all()
        found = dict(zip(map(letters_of, grams.tolist()), parts.weights[first:last].tolist(), strict=True))
        wanted = {part: round(weight / STEP) * STEP for part, weight in attribute.vector(value).items()}
        if "\0" not in value:  # which no text has that was read
            assert found == wanted


def test_a_text_of_a_thousand_letters_is_looked_at_and_no_more():
    long, short = pt.Text().parts(["ab " * 400]), pt.Text().parts([("ab " * 400)[:1000]])
    assert long.grams.tolist() == short.grams.tolist()
    assert long.weights.tolist() == short.weights.tolist()


@dataclass(frozen=True)
class Initials(pt.Text):
    """A kind of one's own that compares texts by something else."""

    def vector(self, value):
        return {word[0]: 1.0 for word in value.split()}


def test_a_kind_that_says_otherwise_is_asked():
    parts = Initials().parts(["ada lovelace", "alan"])
    assert (parts.last - parts.first).tolist() == [2, 1]
    assert len(set(parts.grams.tolist())) == 2


@given(
    st.dictionaries(
        st.text(max_size=3), st.none() | st.text(max_size=3) | st.lists(st.text(max_size=2), max_size=3)
    )
)
def test_fragments_of_texts_are_checked_as_any(fragment):
    other = {name: tuple(v) if isinstance(v, list) else v for name, v in fragment.items()}  # the long way
    assert check_fragment("row 0", fragment) == check_fragment("row 0", other)
