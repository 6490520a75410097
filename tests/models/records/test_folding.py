"""Folding: what differs in case, accents, width or punctuation is the same; every script survives."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partita.models.records.folding import NOTHING, without_accents, words_of
from tests.helpers.effort import examples

SAME = {
    "case": ["Ada LOVELACE", "ada lovelace", "ADA Lovelace"],
    "accents": ["François Müller", "Francois Muller", "FRANÇOIS MÜLLER", "Franc\u0327ois Mu\u0308ller"],
    "sharp s": ["Groß", "GROSS", "gross", "GROẞ"],
    "Danish": ["Ørsted Æble", "Orsted Aeble"],
    "Polish": ["Łódź", "Lodz", "łódź"],
    "Icelandic": ["Þór Guðrún", "Thor Gudrun"],
    "Turkish": ["İstanbul Işık", "Istanbul Isik"],
    "Greek": ["Αθήνα", "ΑΘΗΝΑ", "αθηνα"],
    "final sigma": ["Οδυσσεύς", "ΟΔΥΣΣΕΥΣ"],
    "Cyrillic": ["Королёв", "КОРОЛЕВ"],
    "full width": ["ＡＤＡ　１２３", "ada 123"],
    "half width": ["ﾊﾝｶｸ", "ハンカク"],
    "ligatures": ["ﬁnal oﬃce", "final office"],
    "punctuation": ["Smith-Jones, J. (Jr.)", "smith jones j jr", "Smith_Jones/J;Jr"],
    "apostrophes": ["O'Brien", "O’Brien", "OBrien", "Oʼbrien"],
    "spaces": ["ada  lovelace", " ada\tlovelace\n", "ada\u00a0lovelace", "ada\u3000lovelace"],
    "control characters": ["ada\x00lovelace", "ada\x1blovelace", "ada\x85lovelace", "ada lovelace"],
    "bidi marks": [
        "\u202eada lovelace\u202c",
        "ada\u200f lovelace",
        "\u2067ada\u2069 lovelace",
        "ada lovelace",
    ],
    "byte order mark": ["\ufeffada", "ada"],
    "danda": ["राम।", "राम"],
}


@pytest.mark.parametrize("what", SAME)
def test_the_same_in_other_writing(what):
    first, *others = SAME[what]
    for other in others:
        assert words_of(other) == words_of(first)
    assert NOTHING not in words_of(first)


SURVIVE = {
    "Arabic": "محمد بن عبد الله",
    "Hebrew with points": "עִבְרִית שלום",
    "Devanagari": "नरेन्द्र मोदी",
    "Bengali": "রবীন্দ্রনাথ ঠাকুর",
    "Tamil": "தமிழ்நாடு",
    "Thai": "ประเทศไทย น้ำ",
    "Lao": "ປະເທດລາວ",
    "Khmer": "កម្ពុជា",
    "Burmese": "မြန်မာ",
    "Tibetan": "བོད",
    "Chinese": "毛泽东",
    "Japanese": "東京タワー",
    "Korean": "김정은",
    "Georgian": "საქართველო",
    "Armenian": "հայաստան",
    "Ethiopic": "ኢትዮጵያ",
    "digits": "1815 12 10",
    "beyond the basic plane": "𠮷野",
}


@pytest.mark.parametrize("script", SURVIVE)
def test_other_scripts_survive(script):
    text = SURVIVE[script]
    assert " ".join(words_of(text)) == unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text))


def test_marks_make_the_word_where_they_are_no_habit():
    assert words_of("がん") != words_of("かん")
    assert words_of("नाम") != words_of("नम")
    assert without_accents("é") == "e"
    assert without_accents("が") == "が"


@pytest.mark.parametrize("text", ["", " ", "\x00", "\u200b\u200e", "\ufeff", "\x02\x03"])
def test_what_says_nothing_is_one_word(text):
    assert words_of(text) == [NOTHING]


@pytest.mark.parametrize("text", ["!!!", "-", "☃", "…", "★ ★"])
def test_nothing_but_symbols_stays(text):
    assert " ".join(words_of(text)) == unicodedata.normalize("NFKC", text)


def test_symbols_beside_words_go():
    assert words_of("★ Prince ☃") == ["prince"]


@examples(500)
@given(st.text(max_size=12))
@example("İ")
@example("ŉ")
@example("ΐ")
@example("ᾳ\u0345")
@example("ϓ")
@example("℀ ⅷ ㎏ ﷺ")
@example("'' '")
@example("ᵃª ʰ")
@example("\u0300a")
@example("1\u0301")
@example("ß\u0300ø\u0301")
@example("ꭰ")
@example("Ꭰ")
def test_folding_what_is_folded_changes_nothing(text):
    words = words_of(text)
    assert words
    assert all(word and not any(letter.isspace() for letter in word) for word in words)
    assert words_of(" ".join(words)) == words


def test_every_letter_by_itself_is_folded_once_and_for_all():
    """Each letter there is, at the beginning of a word and within."""
    changed = []
    for code in range(0x80, 0x30000):
        letter = chr(code)
        if letter.isalpha() or unicodedata.category(letter).startswith("M"):
            words = words_of(f"a{letter}b")
            if words_of(" ".join(words)) != words:
                changed.append((hex(code), words))
    assert changed == []


def test_a_long_text_takes_no_time():
    assert len(words_of("Übergröße " * 10_000)) == 10_000
    assert len(words_of("a" * 100_000)[0]) == 100_000
