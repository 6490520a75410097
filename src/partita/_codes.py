"""Codes of keys: 64-bit hashes that are the same in every process and on every machine."""

from __future__ import annotations

from hashlib import blake2b


def code_of(contents: bytes) -> int:
    """The 64-bit code of some bytes."""
    return int.from_bytes(blake2b(contents, digest_size=8).digest(), "little", signed=True)
