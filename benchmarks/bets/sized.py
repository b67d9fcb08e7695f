"""Copies of first-contact scripts in a size that a CPU can bet on.

    python benchmarks/bets/sized.py FOLDER [benchmarks/first_contact/round3]

The scripts of a first-contact round were written by people who had read the rules' pages and nothing else.
Their ``SMALL`` sizes only show that they run: 30 steps of a millisecond. ``sizes.json`` has, for each script,
the numbers to put instead. Only numbers change, and autocast is off, since a CPU without 16-bit products
emulates them. Run the copies with ``SMALL=1``, and samplers with ``BETS_FORWARDS=1`` as well.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
AUTOCAST = re.compile(r"(torch\.autocast\([\w.]+), (?:dtype=)?torch\.bfloat16\)")


def sized(text: str, numbers: dict[str, str]) -> str:
    """Raises ValueError where one of the texts to replace is not there exactly once."""
    for old, new in numbers.items():
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is there {text.count(old)} times")
        text = text.replace(old, new)
    return AUTOCAST.sub(r"\1, enabled=False)", text)


def main() -> None:
    folder = Path(sys.argv[1])
    scripts = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "first_contact/round3"
    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in json.loads((HERE / "sizes.json").read_text(encoding="utf-8")).items():
        text = (scripts / f"{name}.py").read_text(encoding="utf-8")
        (folder / f"{name}.py").write_text(sized(text, numbers), encoding="utf-8")


if __name__ == "__main__":
    main()
