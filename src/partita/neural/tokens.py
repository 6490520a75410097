"""The hybrid tokenizer: a symbol for each piece of JSON's structure, byte-level BPE inside strings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from partita.neural.serialisation import Fragment

# Structure symbols; the text of a set is the concatenation of its symbols' texts and its strings.
SYMBOLS = ("[", '{"', '":["', '","', '"],"', '"]}', ',{"', "]")
SET, OPEN, VALUES, VALUE, KEY, CLOSE, NEXT, END = range(len(SYMBOLS))
N_SYMBOLS = len(SYMBOLS)


class Tokens:
    """Token ids of fragments: symbols first, then the pieces of strings.

    Parameters
    ----------
    bpe : dict
        What :func:`learn` has returned.
    """

    def __init__(self, bpe: dict[str, Any]) -> None:
        self.bpe = bpe
        self._tokenizer = Tokenizer.from_str(json.dumps(bpe))
        self.n_tokens = N_SYMBOLS + self._tokenizer.get_vocab_size()
        self.pieces = lru_cache(200_000)(self._pieces)

    def __reduce__(self) -> tuple[type[Tokens], tuple[dict[str, Any]]]:
        """For copies and other processes: without what is remembered."""
        return type(self), (self.bpe,)

    def _pieces(self, text: str) -> tuple[int, ...]:
        """The pieces of a string."""
        return tuple(N_SYMBOLS + k for k in self._tokenizer.encode(text).ids)

    def bytes_of(self, token: int) -> bytes:
        """What a piece stands for."""
        alphabet = byte_alphabet()
        return bytes(alphabet[letter] for letter in self._tokenizer.id_to_token(token - N_SYMBOLS) or "")

    def of_fragment(self, fragment: Fragment) -> list[int]:
        """A fragment's tokens after the symbol that opens it."""
        found: list[int] = []
        for k, (attribute, values) in enumerate(fragment):
            found += [KEY] * (k > 0)
            found += self.pieces(attribute)
            for j, value in enumerate(values):
                found.append(VALUE if j else VALUES)
                found += self.pieces(value)
        return [*found, CLOSE]

    def text(self, tokens: Iterable[int]) -> str:
        """The JSON text that tokens stand for."""
        parts: list[bytes] = []
        string = b""
        for token in tokens:
            if token >= N_SYMBOLS:
                string += self.bytes_of(token)
            else:
                parts += [json.dumps(string.decode(), ensure_ascii=False)[1:-1].encode()] * bool(string)
                parts.append(SYMBOLS[token].encode())
                string = b""
        return b"".join(parts).decode()


def learn(texts: Iterable[str], n_tokens: int) -> dict[str, Any]:
    """Byte-level BPE from texts, with so many tokens in all."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens - N_SYMBOLS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    found: dict[str, Any] = json.loads(tokenizer.to_str())
    return found


def strings_of(fragments: Iterable[Fragment]) -> Iterator[str]:
    """Every string in fragments, keys too."""
    for fragment in fragments:
        for attribute, values in fragment:
            yield attribute
            yield from values


@lru_cache(1)
def byte_alphabet() -> dict[str, int]:
    """The byte that each letter of a byte-level alphabet stands for (GPT-2's table).

    Bytes that are printable in Latin-1 are themselves, the others follow from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}
