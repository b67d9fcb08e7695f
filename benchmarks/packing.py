"""What it costs to keep traces packed: ``python benchmarks/packing.py TRACE...``, plain Chrome traces.

For each gzip level the ratio, and the best of five of: packing, unpacking, reading it plain and packed.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from warpline.trace.ranges import tables_of

TIMES = 5


def best(act: Callable[[], object]) -> float:
    """Processor time in ms."""

    def once() -> float:
        begin = time.process_time()
        act()
        return time.process_time() - begin

    return 1000 * min(once() for _ in range(TIMES))


def level(plain: Path, number: int, folder: Path) -> str:
    data = plain.read_bytes()
    packed = gzip.compress(data, number)
    path = folder / "trace.json.gz"
    path.write_bytes(packed)
    return (
        f"  level {number}: {len(data) / len(packed):4.1f} times smaller; "
        f"packed in {best(lambda: gzip.compress(data, number)):.0f} ms, "
        f"unpacked in {best(lambda: gzip.decompress(packed)):.0f} ms, "
        f"read in {best(lambda: tables_of(path)):.0f} ms"
    )


def report(plain: Path) -> None:
    print(f"{plain}: {plain.stat().st_size / 1e6:.1f} MB, read in {best(lambda: tables_of(plain)):.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        for number in (1, 3, 6, 9):
            print(level(plain, number, Path(folder)))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        report(Path(name))
