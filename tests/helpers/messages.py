"""Patterns for error messages."""

import re


def all_of(*words):
    """A pattern for messages that have all the words in them, in any order."""
    return "(?is)" + "".join(f"(?=.*{re.escape(word)})" for word in words)
