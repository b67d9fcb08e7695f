"""One client over TCP on this machine. pygls would go on listening after a connection that broke."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from pygls.io_ import run_async

from warpline.lsp.headers import Connection

if TYPE_CHECKING:
    from warpline.lsp.server import Server


def serve(server: Server, port: int) -> None:
    """Wait for a client on 127.0.0.1, serve it, and return when it is gone, however it went."""
    asyncio.run(_serve(server, port))


async def _serve(server: Server, port: int) -> None:
    gone = asyncio.Event()

    async def serve_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.close()
        server.protocol.set_writer(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await run_async(
                stop_event=threading.Event(),
                reader=Connection(reader),
                protocol=server.protocol,
                error_handler=server.report_server_error,
            )
        gone.set()

    listening = await asyncio.start_server(serve_client, "127.0.0.1", port)
    await gone.wait()
