"""Does Warpline find a flaw in a script that nobody tuned it on, and on the line to edit?

    python benchmarks/first_contact.py benchmarks/first_contact/round1 --out DIR
        [--jobs 3] [--timeout 120] [--only 'NAME' ...] [--python PATH] [--rescore]
        [--gpus 0,1] [--seconds 560] [--seed 1]

A round is a folder of programs, written by someone who has seen the rules' pages but neither their code nor
their tests: ``NAME.py``, perhaps with a module ``NAME_lib.py``, or a folder ``NAME`` with a ``main.py``,
which runs in there. The lines that a fix would edit end in `# flaw: RULE`, or `# flaw: RULE|OTHER` where
several rules would be right. A fix that edits several statements has the comment on each of them.
`none-yet(NAME)` names a flaw that no rule looks for; such scripts are listed, but count in no recall. A
program without the comment has no flaw.

Each script is profiled once. A flaw is found at its line when a finding of a right rule stands within the
statement of a marked line, and found as a rule when such a finding stands anywhere. `DIR/results.json` has
all that scoring needs: `--rescore` scores it again, with the marks that the scripts have now, without
running anything. It is written after each script, so a run that is cut off keeps what it has, and `--only`
adds to it.

With `--gpus`, `--jobs` scripts run at a time on each GPU, each with its own share of the host's cores, in an
order that `--seed` draws. No script starts when less than `--timeout` is left of `--seconds`.
Predictions of such runs are of a shared GPU: for bets, which are timed alone, use `--jobs 1`.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import fnmatch
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from betting import program_name  # beside this file

SERVER = Path(__file__).resolve().parents[1] / "server"
MARK = re.compile(r"#\s*flaw:\s*(\S+)")
KEPT = ("id", "rule", "severity", "file", "line", "cause", "message", "predicted", "measured", "evidence")
GRACE_S = 60  # for the report, after warpline's own timeout for the script
RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True)
class Lane:
    """Where one script runs: the GPU that it sees, the cores that it may use. None: all of the host's."""

    gpu: str | None = None
    cores: frozenset[int] | None = None

    def command(self, command: list[str]) -> list[str]:
        if self.cores is None:
            return command
        return ["taskset", "--cpu-list", ",".join(map(str, sorted(self.cores))), *command]

    def environment(self) -> dict[str, str]:
        return {} if self.gpu is None else {"CUDA_VISIBLE_DEVICES": self.gpu}


def lanes(gpus: str | None, jobs: int) -> list[Lane]:
    """``jobs`` lanes for the host, or for each of the GPUs, which then share the host's cores evenly."""
    if gpus is None:
        return [Lane()] * jobs
    names = [gpu for gpu in gpus.split(",") for _ in range(jobs)]
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // len(names))
    return [
        Lane(gpu, frozenset(cores[at * share : (at + 1) * share] or cores)) for at, gpu in enumerate(names)
    ]


@dataclass(frozen=True)
class Program:
    """A program of the round ``folder``. ``key``: the path of its script in there."""

    folder: Path
    key: str

    @property
    def script(self) -> Path:
        return self.folder / self.key

    @property
    def name(self) -> str:
        return program_name(self.script)

    @property
    def cwd(self) -> Path | None:
        return self.script.parent if "/" in self.key else None

    @property
    def sources(self) -> list[str]:
        """The paths of its files in ``folder``."""
        if self.cwd is not None:
            return [path.relative_to(self.folder).as_posix() for path in sorted(self.cwd.rglob("*.py"))]
        module = f"{self.name}_lib.py"
        return [self.key, *([module] if (self.folder / module).exists() else [])]


def programs(folder: Path) -> list[Program]:
    folder = folder.resolve()
    found = [*folder.glob("*.py"), *folder.glob("*/main.py")]
    keys = sorted(path.relative_to(folder).as_posix() for path in found if path.parent.name != "fixed")
    modules = {f"{key.removesuffix('.py')}_lib.py" for key in keys}
    return [Program(folder, key) for key in keys if key not in modules]


@dataclass
class Truth:
    """The flaw of one program: right rules, marked lines, all lines of their statements, each with the path
    of its file in the round. Empty: no flaw."""

    rules: set[str] = field(default_factory=set)
    marked: list[tuple[str, int]] = field(default_factory=list)
    lines: set[tuple[str, int]] = field(default_factory=set)

    def at_line(self, finding: dict[str, Any]) -> bool:
        return any(
            finding["line"] == line and f"/{finding['file']}".endswith(f"/{file}")
            for file, line in self.lines
        )

    @property
    def without_rule(self) -> bool:
        return any(rule.startswith("none-yet") for rule in self.rules)


def statement_lines(tree: ast.Module, line: int) -> set[int]:
    """The lines of the smallest statement around a line; of a compound statement only its head."""
    best: range | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        decorators = getattr(node, "decorator_list", [])
        body = getattr(node, "body", None)
        if decorators:
            first = min(decorator.lineno for decorator in decorators)
        if body:
            last = max(node.lineno, body[0].lineno - 1)
        if first <= line <= last and (best is None or last - first < len(best) - 1):
            best = range(first, last + 1)
    return {line} if best is None else set(best)


def truth_of(program: Program) -> Truth:
    truth = Truth()
    for file in program.sources:
        text = (program.folder / file).read_text(encoding="utf-8")
        tree = ast.parse(text)
        for number, line in enumerate(text.splitlines(), 1):
            if found := MARK.search(line):
                truth.rules |= set(found.group(1).split("|"))
                truth.marked.append((file, number))
                truth.lines |= {(file, at) for at in statement_lines(tree, number)}
    return truth


def profile(
    program: Program, out: Path, timeout: float, python: str | None, lane: Lane = Lane()
) -> dict[str, Any]:
    """Profile one program. Failures are in the result's `failure`; nothing is raised for them."""
    name = program.name
    report, log = out / "reports" / f"{name}.json", out / "logs" / f"{name}.txt"
    for path in (report, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "warpline", "profile", "--json", str(report), "--timeout", str(timeout)]
    command += ["--run-dir", str(out / "runs" / name)]
    command += ["--python", python] if python else []
    paths = [str(SERVER), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **lane.environment()}
    begin, failure = time.monotonic(), None
    with log.open("wb") as stream:
        process = subprocess.Popen(
            lane.command([*command, str(program.script)]),
            cwd=program.cwd,
            stdout=stream,
            stderr=stream,
            env=environment,
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            status = process.wait(timeout + GRACE_S)
            failure = f"exit status {status}" if status else None
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            failure = f"no report after {timeout + GRACE_S:.0f} s"
        finally:
            RUNNING.discard(process)
    result: dict[str, Any] = {"script": program.key, "seconds": round(time.monotonic() - begin, 1)}
    try:
        read = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        return {**result, "failure": f"{failure or 'no report'}: {' / '.join(tail)}", "findings": []}
    findings = [
        {**{key: finding.get(key) for key in KEPT}, "fixes": [fix["title"] for fix in finding["fixes"]]}
        for finding in read["findings"]
    ]
    kept = {key: read[key] for key in ("environment", "steps", "notes")}
    return {**result, "failure": failure, **kept, "findings": findings}


def score(program: Program, result: dict[str, Any]) -> dict[str, Any]:
    """One row of the table: what was planted, whether it was found, and what else was said."""
    truth = truth_of(program)
    right = [finding for finding in result["findings"] if finding["rule"] in truth.rules]
    others = [finding for finding in result["findings"] if finding["rule"] not in truth.rules]
    near = [finding for finding in others if truth.at_line(finding)]
    lines = dict[str, list[str]]()
    for file, line in truth.marked:
        lines.setdefault(file.removeprefix(f"{program.name}/"), []).append(str(line))
    own = lines.pop("main.py" if program.cwd else program.key, [])
    return {
        "name": program.name,
        "rules": sorted(truth.rules),
        "lines": [*own, *(f"{file}:{','.join(some)}" for file, some in lines.items())],
        "without_rule": truth.without_rule,
        "at_line": any(truth.at_line(finding) for finding in right),
        "as_rule": bool(right),
        "others": [describe(finding) for finding in others],
        "others_at_line": [describe(finding) for finding in near],
        "loud": any(finding["severity"] != "hint" for finding in result["findings"]),
        "step_ms": (result.get("steps") or {}).get("step_ms"),
        "seconds": result["seconds"],
        "failure": result["failure"],
    }


def describe(finding: dict[str, Any]) -> str:
    gain = finding.get("predicted") or {}
    times = f" {gain['speedup']:.2f}x" if gain.get("speedup") else ""
    return f"{finding['rule']}:{finding['line']} {finding['severity'][0]}{times}"


def table(rows: list[dict[str, Any]]) -> str:
    head = ("script", "planted", "lines", "at line", "as rule", "step ms", "s", "other findings")
    cells = [head]
    for row in rows:
        planted = "|".join(row["rules"]) or "no flaw"
        lines = ",".join(row["lines"])
        if row["failure"]:
            answers = ("failed", row["failure"][:60])
        elif not row["rules"]:
            answers = ("", "")
        else:
            answers = ("yes" if row["at_line"] else "NO", "yes" if row["as_rule"] else "NO")
        step = "" if row["step_ms"] is None else f"{row['step_ms']:.1f}"
        cells.append(
            (row["name"], planted, lines, *answers, step, f"{row['seconds']:.0f}", ", ".join(row["others"]))
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(head) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        ).rstrip()
        for line in cells
    )


def totals(rows: list[dict[str, Any]]) -> str:
    """Recall over the planted flaws that have a rule, failures included as not found."""
    planted = [row for row in rows if row["rules"] and not row["without_rule"]]
    without = [row for row in rows if row["without_rule"]]
    clean = [row for row in rows if not row["rules"] and not row["failure"]]
    loud = [row["name"] for row in clean if row["loud"]]
    failed = [row["name"] for row in rows if row["failure"]]

    def share(count: int, of: int) -> str:
        return f"{count} of {of}" + (f" ({100 * count / of:.0f} %)" if of else "")

    said = [row["name"] for row in without if row["as_rule"] or row["others_at_line"]]
    return "\n".join(
        [
            f"recall at the edit line      {share(sum(row['at_line'] for row in planted), len(planted))}",
            f"recall for the rule          {share(sum(row['as_rule'] for row in planted), len(planted))}",
            f"no rule yet, something said  {share(len(said), len(without))} {' '.join(said)}".rstrip(),
            f"no flaw, but findings        {share(len(loud), len(clean))} {' '.join(loud)}".rstrip(),
            f"failures                     {share(len(failed), len(rows))} {' '.join(failed)}".rstrip(),
        ]
    )


Results = dict[str, dict[str, Any]]


def run_all(chosen: list[Program], results: Results, arguments: argparse.Namespace) -> None:
    """Profile the programs and add what came out to the results, by key."""
    free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    places = lanes(arguments.gpus, arguments.jobs)
    for place in places:
        free.put(place)
    last_start = time.monotonic() + arguments.seconds - arguments.timeout

    def run(program: Program) -> dict[str, Any] | None:
        if time.monotonic() > last_start:
            return None
        lane = free.get()
        try:
            return profile(program, arguments.out, arguments.timeout, arguments.python, lane)
        finally:
            free.put(lane)

    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        waiting = {pool.submit(run, program): program for program in chosen}
        try:
            for count, done in enumerate(concurrent.futures.as_completed(waiting), 1):
                program, result = waiting[done], done.result()
                if result is None:
                    print(f"{count}/{len(chosen)} {program.name}: not started", file=sys.stderr, flush=True)
                    continue
                results[program.key] = result
                row = score(program, result)
                answer = row["failure"] or ("no flaw" if not row["rules"] else f"at line: {row['at_line']}")
                print(f"{count}/{len(chosen)} {program.name}: {answer}", file=sys.stderr, flush=True)
                write(arguments.out / "results.json", results)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def read(path: Path) -> Results:
    if not path.exists():
        return {}
    return {result["script"]: result for result in json.loads(path.read_text(encoding="utf-8"))["results"]}


def write(path: Path, results: Results) -> None:
    partial = path.with_suffix(".partial")
    content = {"results": [results[name] for name in sorted(results)]}
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one script")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="NAME", help="names, or patterns of them")
    parser.add_argument("--python", help="the interpreter that runs the scripts")
    parser.add_argument("--rescore", action="store_true", help="score DIR/results.json again, run nothing")
    parser.add_argument("--gpus", metavar="0,1", help="--jobs scripts at a time on each of these")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all scripts together")
    parser.add_argument("--seed", type=int, help="of a random order; else by name")
    arguments = parser.parse_args()
    every = programs(arguments.round)
    chosen = [one for one in every if any(fnmatch.fnmatch(one.name, name) for name in arguments.only)]
    if not chosen:
        parser.error(f"no program in {arguments.round} has such a name")
    if arguments.seed is not None:
        random.Random(arguments.seed).shuffle(chosen)
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = read(arguments.out / "results.json")
    if not arguments.rescore:
        run_all(chosen, results, arguments)
    rows = [score(one, results[one.key]) for one in every if one.key in results]
    print(table(rows))
    print()
    print(totals(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
