"""Which tokens may follow: a finite automaton over the JSON of sets of fragments.

Strings are not empty, and are UTF-8 at their ends. So a state is a place in the structure together with,
inside a string, what UTF-8 still expects of the character under way (the Unicode standard, table 3-7).
"""

from __future__ import annotations

import numpy as np

from partita._core.typing import Array, Integers
from partita.neural.tokens import CLOSE, END, KEY, N_SYMBOLS, NEXT, OPEN, SET, VALUE, VALUES, Tokens

# What UTF-8 expects: a new character, 1 to 3 more bytes, or the second byte after E0, ED, F0 or F4.
WHOLE, ONE, TWO, THREE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4 = range(8)
FORBIDDEN = -1

# Places in the structure; the last four are inside strings.
START, OPENING, CLOSED, ENDED, EMPTY_KEY, IN_KEY, EMPTY_VALUE, IN_VALUE = range(8)
AFTER_SYMBOL = {  # place → symbol → place
    START: {SET: OPENING},
    OPENING: {OPEN: EMPTY_KEY},
    IN_KEY: {VALUES: EMPTY_VALUE},
    IN_VALUE: {VALUE: EMPTY_VALUE, KEY: EMPTY_KEY, CLOSE: CLOSED},
    CLOSED: {NEXT: EMPTY_KEY, END: ENDED},
}
AFTER_PIECE = {EMPTY_KEY: IN_KEY, IN_KEY: IN_KEY, EMPTY_VALUE: IN_VALUE, IN_VALUE: IN_VALUE}
N_STATES = 8 * 8


def utf8() -> Integers:
    """The automaton of UTF-8: from what is expected and a byte to what is expected then."""
    table = np.full((8, 256), FORBIDDEN)
    table[WHOLE, :0x80] = WHOLE
    table[WHOLE, 0xC2:0xE0] = ONE
    table[WHOLE, 0xE1:0xF0] = TWO
    table[WHOLE, [0xE0, 0xED]] = AFTER_E0, AFTER_ED
    table[WHOLE, 0xF1:0xF4] = THREE
    table[WHOLE, [0xF0, 0xF4]] = AFTER_F0, AFTER_F4
    for state, first, last, then in (
        (ONE, 0x80, 0xBF, WHOLE),
        (TWO, 0x80, 0xBF, ONE),
        (THREE, 0x80, 0xBF, TWO),
        (AFTER_E0, 0xA0, 0xBF, ONE),
        (AFTER_ED, 0x80, 0x9F, ONE),
        (AFTER_F0, 0x90, 0xBF, TWO),
        (AFTER_F4, 0x80, 0x8F, TWO),
    ):
        table[state, first : last + 1] = then
    return table


class Grammar:
    """The automaton over tokens.

    Attributes
    ----------
    following : (states, tokens) int8 array
        The state after each token; negative where the token is forbidden.
    """

    def __init__(self, tokens: Tokens) -> None:
        following = np.full((N_STATES, tokens.n_tokens), FORBIDDEN, np.int8)
        for place, symbols in AFTER_SYMBOL.items():
            for symbol, then in symbols.items():
                following[8 * place + WHOLE, symbol] = 8 * then + WHOLE
        table = utf8()
        for token in range(N_SYMBOLS, tokens.n_tokens):
            expected = np.arange(8)
            for byte in tokens.bytes_of(token):
                expected = np.where(expected < 0, FORBIDDEN, table[expected, byte])
            for place, then in AFTER_PIECE.items():
                allowed = expected >= 0
                following[8 * place : 8 * place + 8, token][allowed] = 8 * then + expected[allowed]
        self.following: Array = following

    def states(self, tokens: Array, state: int = 8 * START + WHOLE) -> Array:
        """The state before each token of a sequence; ValueError names the first that is forbidden."""
        found = np.empty(len(tokens), np.int32)
        for k, token in enumerate(tokens.tolist()):
            found[k] = state
            state = int(self.following[state, token])
            if state < 0:
                raise ValueError(f"token {k} may not stand there")
        return found
