"""The encoding of a text: found by its first bytes, or by all of them; and any encoding read as UTF-8.

What begins with a byte-order mark says what it is, and UTF-16 without one shows in its NUL bytes. What else is valid
UTF-8 is that. What is not is Windows-1252, or Latin-1 if it has bytes that Windows-1252 leaves undefined: but not if
much of it is UTF-8 beyond ASCII, for then it is UTF-8 with a broken place, and to read it otherwise would garble the
rest in silence.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

CHUNK = 1 << 20  # bytes read at a time
UTF8 = "utf-8"
WINDOWS, LATIN = "windows-1252", "latin-1"
TITLES = {WINDOWS: "Windows-1252", LATIN: "Latin-1"}
MARKS = (  # the longer ones first: UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
EVIDENT = 0.1  # of the characters of a UTF-16 text are of ASCII: ends of lines, delimiters, quotes
# Sequences of UTF-8 that stand for one character beyond ASCII.
SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
BEGUN = re.compile(rb"(?:[\xc2-\xf4][\x80-\xbf]{0,2}|\r)\Z")  # what the next chunk may go on with
ASCII, BEYOND = bytes(range(0x80)), re.compile(rb"[\x80-\xff]")
LEADS = bytes(range(0xC2, 0xF5))
UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")  # in Windows-1252
BY_CHANCE = 20  # broken places for each valid sequence, from which the sequences are taken for chance


def checked(name: str) -> str:
    """The name of an encoding, as Python knows it."""
    try:
        "a".encode(name)
    except (LookupError, UnicodeError):
        raise ValueError(
            f"unknown encoding {name!r}; there are utf-8, utf-16, latin-1, windows-1252, shift-jis, gb18030, …"
        ) from None
    found = codecs.lookup(name).name
    return UTF8 if found in ("utf-8", "utf-8-sig", "ascii") else found


def marked(start: bytes) -> str | None:
    """The encoding that the first bytes tell; None if they do not."""
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return encoding
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = start[first::2].count(0), start[1 - first :: 2].count(0)
        if not others and zeros > EVIDENT * len(start) / 2:
            try:
                start[: len(start) // 2 * 2 - 2].decode(encoding)
            except UnicodeDecodeError:
                return None
            return encoding
    return None


def title(encoding: str) -> str:
    """An encoding's name for people."""
    return TITLES.get(encoding, encoding.upper())


# ---------------------------------------------------------------------- all of a text


@dataclass
class Contents:
    """What the bytes of a text are, as far as they have been looked at.

    Attributes
    ----------
    sequences, broken : int
        How many characters beyond ASCII are valid UTF-8, and how many bytes beyond ASCII are not.
    line, first : int
        How many lines have ended, and the first one with a broken byte.
    ends : set of bytes
        How lines end; within quotes too.
    """

    sequences: int = 0
    broken: int = 0
    line: int = 0
    first: int = 0
    undefined: bool = False
    zeros: bool = False
    ends: frozenset[bytes] = frozenset()

    @property
    def is_single(self) -> bool:
        """Whether it is not UTF-8, and must be of one byte a character."""
        return self.sequences * BY_CHANCE <= self.broken and self.broken > 0

    @property
    def single(self) -> str:
        """Which encoding of one byte a character it is, then."""
        return LATIN if self.undefined else WINDOWS

    def add(self, chunk: bytes) -> None:
        """Look at more of it; characters, and the ends of lines, must be whole."""
        if not chunk.isascii():
            self._add_characters(chunk)
        pairs, feeds, returns = chunk.count(b"\r\n"), chunk.count(b"\n"), chunk.count(b"\r")
        found = ((b"\r\n", pairs), (b"\n", feeds - pairs), (b"\r", returns - pairs))
        self.ends |= {end for end, count in found if count}
        self.line += feeds + returns - pairs
        self.zeros = self.zeros or b"\0" in chunk

    def _add_characters(self, chunk: bytes) -> None:
        self.undefined = self.undefined or any(byte in chunk for byte in UNDEFINED)
        try:
            chunk.decode(UTF8)
        except UnicodeDecodeError as error:
            self.first = self.first or self.line + lines_in(chunk[: error.start].decode()) + 1
            self.sequences += len(SEQUENCE.findall(chunk))
            self.broken += len(SEQUENCE.sub(b"", chunk).translate(None, ASCII))
        else:
            self.sequences += len(chunk) - len(chunk.translate(None, LEADS))


def lines_in(text: str) -> int:
    """How many lines end in a text."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def contents_of(stream: BinaryIO) -> Contents:
    """Look at all of a text."""
    found, rest = Contents(), b""
    while chunk := stream.read(CHUNK):
        chunk = rest + chunk
        begun = BEGUN.search(chunk, max(len(chunk) - 3, 0))
        end = begun.start() if begun else len(chunk)
        found.add(chunk[:end])
        rest = chunk[end:]
    found.add(rest)
    return found


def verdict(name: str, contents: Contents) -> str:
    """The encoding of a text without marks; ValueError if it is none, or several."""
    if not contents.broken:
        return UTF8
    if contents.zeros:
        raise ValueError(f"{name} is not text, or in an encoding that must be named (--encoding)")
    if not contents.is_single:
        raise mixed(name, contents.first)
    return contents.single


def mixed(name: str, line: int) -> ValueError:
    """The error of a text that is UTF-8 in one place and not in another."""
    return ValueError(
        f"{name}, line {line} is not in UTF-8, though there is UTF-8 elsewhere: mend it, or name the encoding of the "
        "whole (--encoding windows-1252, for instance)"
    )


def broken(name: str, line: int, encoding: str) -> ValueError:
    """The error of a text that is not in the encoding that was named."""
    return ValueError(
        f"{name}, line {line} is not in {title(encoding)}: mend it, or name another encoding (--encoding)"
    )


class Guess:
    """Finds out the encoding of a stream line by line, as it cannot be looked at beforehand.

    It is UTF-8 if that is known.
    """

    def __init__(self, name: str, note: Any, known: bool) -> None:
        self._name, self._note, self._known = name, note, known
        self._seen = Contents()
        self._encoding = UTF8

    def text(self, line: bytes, number: int) -> str:
        """A line as text; ValueError if it is in another encoding than those before."""
        if line.isascii():
            return line.decode()
        self._seen.line = number - 1
        self._seen.add(line)
        if self._seen.broken and self._known:
            raise broken(self._name, number, UTF8)
        if self._seen.broken and not self._seen.is_single:
            raise mixed(self._name, number)
        if self._seen.broken and self._encoding == UTF8:
            self._encoding = self._seen.single
            self._note(read_as(self._name, self._encoding))
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError:
            raise ValueError(
                f"{self._name}, line {number} is not in {title(self._encoding)}, as lines before seemed to be: name "
                "the encoding of the whole (--encoding latin-1, for instance)"
            ) from None


def read_as(name: str, encoding: str) -> str:
    """What is said of a text that is not UTF-8."""
    return f"{name} is read as {title(encoding)}; --encoding says otherwise"


# ---------------------------------------------------------------------- as UTF-8


class Utf8(io.RawIOBase):
    """A stream of bytes in another encoding, read as UTF-8. ValueError names the line that is not in it."""

    def __init__(self, name: str, stream: Any, encoding: str) -> None:
        self._name, self._stream, self._encoding = name, stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready, self._ended = b"", False
        self._lines, self._last = 0, ""  # the last character read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            self._ready = self._more()
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _more(self) -> bytes:
        chunk = self._stream.read1(CHUNK)
        self._ended = not chunk
        try:
            text = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(error.encoding, errors="replace")
            line = self._lines + lines_in(before) - (self._last + before[:1] == "\r\n") + 1
            raise broken(self._name, line, self._encoding) from None
        if not text:
            return b""
        self._lines += lines_in(text) - (self._last + text[:1] == "\r\n")
        if not self._last:
            text = text.removeprefix("\ufeff")
        self._last = text[-1:] or "\ufeff"
        return text.encode()
