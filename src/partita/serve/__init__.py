"""The service: a knowledge base over HTTP, and a page to look at it with (extra ``serve``).

:func:`create_app` makes an ASGI application of a knowledge base, and :func:`serve` runs it until it is told to stop.
``desk`` decides who may use the knowledge base when, ``security`` who may at all; ``reading``, ``writing`` and ``live``
are the calls under ``/api/v1``, ``reconcile`` what OpenRefine asks, ``mcp`` the tools of agents, ``page`` what a
browser shows. What each call answers is what the command line prints with ``--json``.
"""

from partita.serve.app import create_app
from partita.serve.running import serve

__all__ = ["create_app", "serve"]
