"""What a worker process writes, as the server reads it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from warpline.lsp.worker.engine import Engine


def test_lines_of_output_are_whole_however_they_come() -> None:
    """A traceback has a line of 60 marks, each written by itself: the frames above it must not be lost."""
    written = (
        'Traceback:\n  File "train.py", line 5\r\n' + "^" * 60 + "\nÄrger, at the end without a line end"
    )

    async def read() -> tuple[list[str], list[str]]:
        lines: list[str] = []
        engine = Engine(lines.append)
        reader = asyncio.StreamReader()
        process: Any = SimpleNamespace(stderr=reader)
        reading = asyncio.create_task(engine._output(process))
        data = written.encode()
        for start in range(len(data)):
            reader.feed_data(data[start : start + 1])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        reader.feed_eof()
        await reading
        return lines, list(engine.tail)

    lines, tail = asyncio.run(read())
    assert [line for line in lines if line] == written.splitlines()
    assert tail == lines
