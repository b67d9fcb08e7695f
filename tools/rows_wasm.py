"""Makes ``server/warpline/trace/rows.wasm`` of ``rows.c``: run it after every change there.

    pip install ziglang==0.17.1   (which brings clang for WebAssembly; 400 MB)
    python tools/rows_wasm.py

The result has the checksum of the source in it, which a test compares.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "server" / "warpline" / "trace" / "rows.c"
COMPILER = [sys.executable, "-m", "ziglang", "cc"]
OPTIONS = [
    "-target", "wasm32-freestanding", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O3", "-msimd128",
    "-mbulk-memory", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all",
]  # fmt: skip
SECTION = "source"  # of the module: the checksum


def named(content: bytes) -> bytes:
    """A custom section of a WebAssembly module. Its lengths fit into one byte each."""
    name = SECTION.encode()
    body = bytes([len(name)]) + name + content
    return bytes([0, len(body)]) + body


def checksum() -> bytes:
    """Of the source, wherever it was checked out."""
    return hashlib.sha256(SOURCE.read_bytes().replace(b"\r\n", b"\n")).hexdigest().encode()


def main() -> int:
    made = SOURCE.with_suffix(".wasm")
    subprocess.run([*COMPILER, *OPTIONS, str(SOURCE), "-o", str(made)], check=True)
    made.write_bytes(made.read_bytes() + named(checksum()))
    print(f"{made}: {made.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
