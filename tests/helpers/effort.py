"""How hard the tests try: enough to show each guarantee by default, and ten times as hard with ``--long``.

``pytest --long`` (or ``PARTITA_LONG=1 pytest``) draws other examples every time, and more of them; trains
longer, kills more processes, looks at more orders and more data.
"""

import os

from hypothesis import settings

LONG = os.environ.get("PARTITA_LONG", "") not in ("", "0")

settings.register_profile("fast", deadline=None, derandomize=True, database=None, max_examples=20)
settings.register_profile("long", deadline=None, max_examples=200)
settings.load_profile("long" if LONG else "fast")


def effort(usual, long):
    """One of two: a number of repetitions, a list of cases."""
    return long if LONG else usual


def examples(number, **more):
    """Hypothesis's settings: so many examples, or ten times as many."""
    return settings(max_examples=effort(number, 10 * number), **more)
