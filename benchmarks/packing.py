"""What it costs to keep traces packed: ``python benchmarks/packing.py TRACE...``, plain Chrome traces.

For levels of zlib and of ISA-L, which runs are kept with, the ratio, and the best of five of: packing,
unpacking, reading it plain and packed by one process.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isal import igzip

from warpline.trace.ranges import tables_of

TIMES = 5


def best(act: Callable[[], object]) -> float:
    """Processor time in ms."""

    def once() -> float:
        begin = time.process_time()
        act()
        return time.process_time() - begin

    return 1000 * min(once() for _ in range(TIMES))


def level(plain: Path, library: Any, number: int, folder: Path) -> str:
    data = plain.read_bytes()
    packed = library.compress(data, number)
    path = folder / "trace.json.gz"
    path.write_bytes(packed)
    return (
        f"  {library.__name__} {number}: {len(data) / len(packed):4.1f} times smaller; "
        f"packed in {best(lambda: library.compress(data, number)):.0f} ms, "
        f"unpacked in {best(lambda: library.decompress(packed)):.0f} ms, "
        f"read in {best(lambda: tables_of(path, 1)):.0f} ms"
    )


def report(plain: Path) -> None:
    print(f"{plain}: {plain.stat().st_size / 1e6:.1f} MB, read in {best(lambda: tables_of(plain, 1)):.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        for library, number in ((gzip, 1), (gzip, 6), (igzip, 0), (igzip, 1), (igzip, 2), (igzip, 3)):
            print(level(plain, library, number, Path(folder)))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        report(Path(name))
