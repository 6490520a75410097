"""Running the service: where it listens, and how it stops."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from partita.serve.desk import Desk

BACKLOG = 128
SIGNALS = (signal.SIGINT, signal.SIGTERM)
IDLE = 75  # seconds that a connection is kept without a request
TURN = 0.0005  # seconds that a thread computes while others wait: the sampler's gives its turn up again and again
GRACE = 300  # seconds that what is being done when the service is stopped may take


class Server(uvicorn.Server):
    """uvicorn's server; when it is told to stop, live feeds end and no change begins any more."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop when a signal says so, and that is the end of it: whoever stops the service is not told of an error."""
        if threading.current_thread() is not threading.main_thread():  # which alone hears signals
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, when what is being done is done; at once, when interrupted twice."""
        self._desk.stop()
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Whether an address is only reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; OSError says what to do about it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By the name of its protocol asyncio knows that answers are to be sent at once, not when the last was acknowledged.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise OSError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --port"
        ) from None
    return found


def serve(
    app: FastAPI,
    listening: socket.socket,
    *,
    started: Callable[[], Any] = lambda: None,
    log_level: str = "warning",
) -> None:
    """Answer on a socket that listens until a signal says to stop; ``started`` is called before the first answer.

    Parameters
    ----------
    app : FastAPI
        As :func:`create_app` makes it.
    listening : socket
        As :func:`listen` makes it.
    started : callable
        Called when connections are taken.
    log_level : str
        Of uvicorn.
    """
    config = uvicorn.Config(
        app,
        log_level=log_level,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
    )
    sys.setswitchinterval(TURN)
    started()
    Server(config, app.state.desk).run(sockets=[listening])
