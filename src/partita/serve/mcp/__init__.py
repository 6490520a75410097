"""A knowledge base as tools for agents: the Model Context Protocol, over standard input and output (extra ``mcp``).

``arguments`` says what each tool takes, ``reading`` and ``writing`` what it does, ``sizes`` how much of that an agent
is given at once, ``tools`` which there are, and ``server`` speaks the protocol.
"""

from partita.serve.mcp.server import serve, server

__all__ = ["serve", "server"]
