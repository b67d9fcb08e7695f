"""How much of what an expert would set in a framework's script Warpline found at its line, as Markdown.

    python benchmarks/first_contact.py ROUND --out DIR ...
    python benchmarks/settings.py ROUND DIR [--device gpu]

The scripts of ROUND have `# expert: WHAT` on the call, class, dict or argument that the expert edits, and
`# expert-gpu: WHAT` where that pays on a GPU only; a line may have several. WHAT begins with the name of the
setting, an argument or a method. A mark is found at its line where a finding stands within the statement that
makes no other mark's setting there, and found with its edit where an edit of the finding, its title or the
lines in which it replaces something have that name; an edit of another statement that does the same counts,
with its line.

For each script also: how far the lines and what is unattributed are from the step; how much of the device's
time, on the user's lines that call a framework, is below a line of it, below a module's path (forward and
backward of what a module's call runs), and below a name of any kind: a module, a part
(`optimizer/AdamW.step`) or a library's function; and what has the time outside of the modules.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from first_contact import statement_lines  # beside this file

MARK = re.compile(r"#\s*expert(-gpu)?:\s*(.+?)\s*(?=#\s*expert|$)")
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z][a-z0-9]*(?==)")
FIRST = re.compile(r"\w+")  # the name of a class or function


@dataclass
class Mark:
    """``lines``: those of the marked statement. ``at_line`` and ``edit``: the rules of the findings."""

    what: str
    line: int
    lines: set[int]
    at_line: list[str]
    edit: list[str]


def marks(script: Path, report: dict[str, Any], device: str) -> list[Mark]:
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = []
    lines = text.splitlines()
    every = [(at, mark) for at, line in enumerate(lines, 1) for mark in MARK.finditer(line)]
    bare = [MARK.sub("", line) for line in lines]
    named = [
        (at, mark, (NAME.findall(mark.group(2)) or FIRST.findall(mark.group(2)))[0]) for at, mark in every
    ]
    for number, mark, name in named:
        if mark.group(1) and device == "cpu":
            continue
        statement = statement_lines(tree, number)
        right = [one for one in report["findings"] if name in said(one, bare)]
        others = [other for at, _, other in named if at in statement and other != name]
        here = [
            one
            for one in report["findings"]
            if one["line"] in statement
            and Path(one["file"]).name == script.name
            and (one in right or not any(other in said(one, bare) for other in others))
        ]
        words = [one["rule"] + ("" if one in here else f" at {one['line']}") for one in right]
        found.append(Mark(mark.group(2), number, statement, rules(here), words))
    return found


def said(finding: dict[str, Any], text: list[str]) -> str:
    edits = [edit for fix in finding["fixes"] for edit in fix["edits"] if edit["file"] == finding["file"]]
    inner = [edit for edit in edits if edit["start"] != edit["end"]]  # else something is put in
    lines = {line for edit in inner for line in range(edit["start"][0], edit["end"][0] + 1)}
    changed = [text[line - 1] for line in sorted(lines) if line <= len(text)]
    return " ".join(
        [*(edit["text"] for edit in edits), *changed, *(fix["title"] for fix in finding["fixes"])]
    )


def rules(findings: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(one["rule"] for one in findings))


def inside(report: dict[str, Any]) -> tuple[float, float, float, str]:
    """Percent of the device's time below a framework's line, below a module and below any name, of lines that
    call one; and what the time outside of the modules was spent in: the optimizer, copies of batches, the
    choice of the next token."""
    opaque = [line for line in report["lines"] if line["inside"]]
    whole = sum(line["device_ms"] for line in opaque)
    if not whole:
        return 0.0, 0.0, 0.0, ""
    library = own = 0.0
    rest: Counter[str] = Counter()
    for line in opaque:
        for entry in line["inside"]:
            library += entry["device_ms"]
            if entry["module"] is None:  # "" is the model itself
                rest[entry.get("part") or entry["function"]] += entry["device_ms"]
                itself = (entry["file"], entry["line"]) == (line["file"], line["line"])
                own += entry["device_ms"] if itself and not entry.get("part") else 0.0
    words = [f"{name} {100 * ms / whole:.1f} %" for name, ms in rest.most_common(3) if ms > whole / 200]
    modules = library - sum(rest.values())
    return 100 * library / whole, 100 * modules / whole, 100 * (library - own) / whole, ", ".join(words)


def closing(report: dict[str, Any]) -> float:
    """How far the sum of all lines is from the step, in percent of it."""
    step = report["steps"]["step_ms"]
    total = sum(line["step_ms"] for line in report["lines"]) + report["unattributed"]["step_ms"]
    return 100 * (total / step - 1) if step else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args()
    columns = "script", "step ms", "sum off", "library", "module", "named", "rest"
    print(f"| {' | '.join(columns)} | expert's mark | at its line | its edit |")
    print("|" + "---|" * 10)
    every: list[Mark] = []
    scripts = sorted(options.round.glob("*.py"))
    for script in scripts:
        path = options.out / "reports" / f"{script.stem}.json"
        if not path.exists():
            print(f"| {script.stem} | no report |" + " |" * 8)
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        mine = marks(script, report, options.device)
        every += mine
        library, module, named, rest = inside(report)
        head = [script.stem, f"{report['steps']['step_ms']:.1f}", f"{closing(report):+.2f} %"]
        head += [f"{library:.1f} %", f"{module:.1f} %", f"{named:.1f} %", rest]
        rows: list[Mark | None] = [*mine] or [None]
        for one in rows:
            cells = (
                [f"{one.line}: {one.what}", *(", ".join(each) or "NO" for each in (one.at_line, one.edit))]
                if one
                else ["none", "", ""]
            )
            print(f"| {' | '.join([*head, *cells])} |")
            head = [""] * 7
        others = [one for one in report["findings"] if not any(one["line"] in mark.lines for mark in mine)]
        if others:
            told = ", ".join(f"`{one['rule']}` {one['severity']} at {one['line']}" for one in others)
            print(f"| | | | | | | | elsewhere | {told} | |")
    found, edits = sum(bool(one.at_line) for one in every), sum(bool(one.edit) for one in every)
    print(f"\n{found} of {len(every)} marks have a finding at their line, {edits} one with the expert's edit")


if __name__ == "__main__":
    main()
