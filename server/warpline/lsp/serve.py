"""Starts the server with all its methods, serves one client, and ends."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys

from warpline.lsp import tcp
from warpline.lsp.headers import Pipe
from warpline.lsp.methods import registry
from warpline.lsp.server import Server


def build() -> Server:
    """A server with all its methods."""
    server = Server()
    registry.register(server)
    return server


def serve(port: int | None = None) -> int:
    """Serve one client, on standard input and output or on ``port`` of 127.0.0.1, until it goes."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="warpline: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # Nothing else may read or write the channel: not a stray print, not a process we start.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    server = build()
    # An answer of a screenful is thousands of objects, all freed at once: at the usual 700 the collector
    # would look at each answer several times while it is made.
    gc.set_threshold(20_000, 10, 10)
    try:
        if port is None:
            server.start_io(Pipe(requests), answers)  # type: ignore[arg-type]  # pygls reads no more of it
        else:
            tcp.serve(server, port)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        server.desk.kill()
        server.folders.kill()
        with contextlib.suppress(OSError):
            answers.close()
    return server.protocol.status
