"""Bets as they are kept in a file, and their table: for ``bets.py``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median


def program_name(script: Path) -> str:
    """Its name in a round: that of its folder, if the script is the ``main.py`` of a program's folder."""
    return script.parent.name if script.name == "main.py" else script.stem


@dataclass
class Bet:
    """``low``, ``high``: the predicted interval. ``texts``: changed files by their path below ``folder``."""

    script: str
    folder: str
    argv: list[str]
    rule: str
    fix: str
    basis: str
    predicted: float
    low: float
    high: float
    texts: dict[str, str]
    label: str = "first"
    device: str = ""
    made: str = ""  # when the prediction was written
    ratios: list[float] = field(default_factory=list)
    plain_ms: float | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        """The name of the program in its round."""
        return program_name(Path(self.folder) / self.script)

    @property
    def measured(self) -> float | None:
        return median(self.ratios) if self.ratios else None

    @property
    def error(self) -> float | None:
        return abs(self.predicted / self.measured - 1) if self.measured else None


def show(options: argparse.Namespace) -> None:
    bets = [bet for file in options.bets for bet in read(file)]
    for label in dict.fromkeys(bet.label for bet in bets):
        mine = [bet for bet in bets if bet.label == label]
        print(f"\n{label} ({min(bet.made for bet in mine)[:10]}):\n")
        print("| script | fix | basis | plain ms | predicted | interval | measured | error | inside |")
        print("|---|---|---|---|---|---|---|---|---|")
        for bet in mine:
            cells = [bet.name, bet.rule, bet.basis]
            cells += [f"{bet.plain_ms:.1f}" if bet.plain_ms else "", f"{bet.predicted:.2f}"]
            cells.append(f"{bet.low:.2f} to {bet.high:.2f}")
            if bet.measured and bet.error is not None:
                inside = "yes" if bet.low <= bet.measured <= bet.high else "no"
                cells += [f"{bet.measured:.2f}", f"{100 * bet.error:.0f} %", inside]
            else:
                cells += [bet.reason or "not timed", "", ""]
            print(f"| {' | '.join(cells)} |")
        summary(mine)


def summary(bets: list[Bet]) -> None:
    done = [bet for bet in bets if bet.measured]
    for basis in ("all", *dict.fromkeys(bet.basis for bet in done)):
        some = [bet for bet in done if basis in ("all", bet.basis)]
        errors = [bet.error for bet in some if bet.error is not None]
        if not errors:
            continue
        inside = sum(bet.low <= (bet.measured or 0) <= bet.high for bet in some)
        width = median(bet.high / bet.low for bet in some)
        scripts = len({bet.name for bet in some})
        print(
            f"\n{basis}: {len(some)} fixes on {scripts} scripts, median error {100 * median(errors):.0f} %, "
            f"largest {100 * max(errors):.0f} %; {inside} of {len(some)} inside, median width {width:.2f}"
        )


def read(path: Path) -> list[Bet]:
    return [Bet(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def write(path: Path, bets: list[Bet]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps([asdict(bet) for bet in bets], indent=1), encoding="utf-8")
    scratch.replace(path)
