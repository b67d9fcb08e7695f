"""The language server's speed, beside other servers in the same run.

    python benchmarks/lsp.py [--only PART] [--rounds 5] [--requests 200] [--lines 10000] [--peers FOLDER]
                             [--json FILE]

Start-up: spawn to the answer of ``initialize``, servers in turn, medians. Then one file of ``--lines``
lines that all have results, in functions of 50: hover, hints of a screen of 60 lines, lenses, heat of what
an editor asks for (three screens) and of the file, code actions, an edit until its moved hints are there;
once in peace and once while a profile runs. Last a fix resolved in a file of 1,000 lines after an edit
elsewhere, and after one in its own function.
``--peers``: a folder with executables of other servers
(jedi-language-server, pylsp, ruff, basedpyright-langserver, esbonio; those on the PATH are taken too).

Goals: start at most 1.15 times the least pygls server; idle at most 60 MB and no CPU; p99 of hover and
hints 5 ms, of lenses, heat and code actions 10 ms, of a resolved edit 300 ms; an edit moves its hints
within 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "server"), str(ROOT)]

from tests.lsp.client import Client, capabilities, span
from tests.lsp.folder import finding, write_run

HERE = Path(__file__).parent
EDITOR = capabilities("vscode-139.1-lc11")
PEERS = {
    "jedi-language-server": ["jedi-language-server"],
    "python-lsp-server": ["pylsp"],
    "ruff": ["ruff", "server"],
    "basedpyright": ["basedpyright-langserver", "--stdio"],
    "esbonio": ["esbonio", "server"],
}
BUSY = """\
import torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(torch.randn(64, 256)).sum().backward()
    optimizer.step()
"""
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("start", "requests", "resolve"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    servers = {
        "warpline": [sys.executable, "-m", "warpline", "server"],
        "least pygls": [sys.executable, str(HERE / "lsp_peers/least_pygls.py")],
        "least raw": [sys.executable, "-S", str(HERE / "lsp_peers/least_raw.py")],
    } | installed(options.peers)
    with tempfile.TemporaryDirectory() as place:
        parts: dict[str, Callable[[], list[Row]]] = {
            "start": lambda: start(servers, Path(place), options.rounds),
            "requests": lambda: requests(servers, Path(place) / "requests", options),
            "resolve": lambda: resolve(Path(place) / "resolve", min(options.requests, 30)),
        }
        results = {name: part() for name, part in parts.items() if options.only in (None, name)}
    for title, rows in results.items():
        show(title, rows)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def installed(folder: Path | None) -> dict[str, list[str]]:
    """The peers that are there."""
    where = os.pathsep.join(filter(None, (str(folder) if folder else "", os.environ.get("PATH", ""))))
    found = {}
    for name, (program, *rest) in PEERS.items():
        if path := shutil.which(program, path=where):
            found[name] = [path, *rest]
    return found


def start(servers: dict[str, list[str]], folder: Path, rounds: int) -> list[Row]:
    """Spawn to initialized, memory and CPU at rest."""
    samples: dict[str, list[tuple[float, float, float]]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, command in servers.items():
            before = time.perf_counter()
            with Client(folder, capabilities=EDITOR, command=command) as client:
                taken = (time.perf_counter() - before) * 1e3
                time.sleep(1.5)
                memory, spent = usage(client.process.pid)
                time.sleep(2)
                samples[name].append((taken, memory, (usage(client.process.pid)[1] - spent) / 2 * 100))
    least = statistics.median(taken for taken, _, _ in samples["least pygls"])
    rows = []
    for name, found in samples.items():
        taken, memory, busy = (statistics.median(values) for values in zip(*found, strict=True))
        rows.append(
            {"server": name, "ms": taken, "of least pygls": taken / least, "MB": memory, "idle CPU %": busy}
        )
    return rows


def requests(servers: dict[str, list[str]], folder: Path, options: argparse.Namespace) -> list[Row]:
    folder.mkdir()
    script = folder / "long.py"
    text = [f"    x{n} = layer{n}(x{n - 1})  # {n % 7 + 1} ms\n" for n in range(options.lines)]
    text[::50] = [f"def part{n}(x):\n" for n in range(len(text[::50]))]
    script.write_text("".join(text))
    (folder / "busy.py").write_text(BUSY)
    findings = [finding(script, line) for line in range(5, options.lines, 50)]
    write_run(folder, {script: script.read_text()}, findings=findings, step_ms=50.0)
    rows = []
    for name, command in servers.items():
        with opened(command, folder, script) as (client, uri):
            rows += measured(name, client, uri, options)
    with opened(servers["warpline"], folder, script) as (client, uri):
        busy = {"uri": (folder / "busy.py").as_uri(), "python": sys.executable, "warmup": 10**9}
        number = client.begin("warpline/profile", busy)
        client.wait(lambda: any(p["stage"] == "warmup" for p in client.messages("warpline/progress")))
        rows += measured("warpline, profiling", client, uri, options)
        client.cancel(number)
    return rows


@contextmanager
def opened(command: list[str], folder: Path, script: Path) -> Iterator[tuple[Client, str]]:
    with Client(folder, capabilities=EDITOR, command=command) as client:
        uri = client.open(script)
        client.request("textDocument/hover", at(uri, 0))
        if "warpline" in command:
            client.until(lambda: client.hints(uri, 0, 5))
        yield client, uri


def measured(name: str, client: Client, uri: str, options: argparse.Namespace) -> list[Row]:
    """p50 and p99 in milliseconds of each kind of request, where the server has it; and the processor time
    of the server for it, which a busy machine lengthens less."""
    offered = client.server["capabilities"]
    lines = random.Random(1).choices(range(options.lines - 60), k=options.requests)
    document = {"uri": uri}

    def screen(line: int) -> Any:
        return client.request(
            "textDocument/inlayHint", {"textDocument": document, "range": span((line, 0), (line + 60, 0))}
        )

    def action(line: int) -> Any:
        where = {
            "textDocument": document,
            "range": span((line, 0), (line + 1, 0)),
            "context": {"diagnostics": []},
        }
        return client.request("textDocument/codeAction", where)

    def edit(line: int) -> Any:
        client.edit(uri, (0, 0), (0, 0), "\n")
        return screen(line)

    def lenses(_: int) -> Any:
        return client.request("textDocument/codeLens", {"textDocument": document})

    def heat(line: int) -> Any:
        return client.request("warpline/heat", {"uri": uri, "first": line - 60, "last": line + 120})

    def whole(_: int) -> Any:
        return client.request("warpline/heat", {"uri": uri})

    ours = offered.get("experimental") or {}
    wall: Row = {"server": name}
    processor: Row = {"server": f"{name}, processor"}
    for kind, provider, ask in (
        ("hover", "hoverProvider", lambda line: client.request("textDocument/hover", at(uri, line))),
        ("hints", "inlayHintProvider", screen),
        ("lenses", "codeLensProvider", lenses),
        ("heat", "warpline", heat),
        ("heat of the file", "warpline", whole),
        ("actions", "codeActionProvider", action),
        ("edit to hints", "inlayHintProvider", edit),
    ):
        if offered.get(provider) or provider in ours:
            wall[kind], processor[kind] = timed(ask, lines, client.process.pid)
    return [wall, processor]


def resolve(folder: Path, count: int) -> list[Row]:
    """A real finding's fix, made anew after each edit, in a file of 1,000 lines."""
    folder.mkdir()
    script = folder / "slow.py"
    text = (ROOT / "examples/quickstart/slow.py").read_text()
    filler = "".join(
        f"def unused{n}(x):\n    return x + {n}\n\n\n" for n in range((1000 - text.count("\n")) // 4)
    )
    script.write_text(text.replace("def main():", filler + "def main():"))
    with Client(folder, capabilities=EDITOR) as client:
        uri = client.open(script)
        client.request("warpline/profile", {"uri": uri, "python": sys.executable})
        notice = client.diagnostics(uri)[0]
        line = notice["range"]["start"]["line"]
        action = next(a for a in client.actions(uri, line) if a.get("data", {}).get("what") == "fix")

        def ask(at: int) -> Any:
            client.edit(uri, (at, 0), (at, 0), "\n")
            return client.request("codeAction/resolve", action)

        row: Row = {"server": "warpline", "rule": notice["code"]}
        # Above everything: the fix moves along. Inside its own function: the rule makes it anew.
        for kind, at in (("edited elsewhere", 0), ("edited in its function", line + count + 2)):
            assert "edit" in ask(at), "the fix was not made"
            row[kind], _ = timed(ask, [at] * count, client.process.pid)
        return [row]


def timed(ask: Callable[[int], Any], lines: list[int], pid: int) -> tuple[str, str]:
    """``p50 / p99`` in ms until the answer is there, and of the processor time of the process's threads."""
    wall, processor = [], []
    for line in lines:
        spent, before = running_ms(pid), time.perf_counter()
        ask(line)
        wall.append((time.perf_counter() - before) * 1e3)
        processor.append(running_ms(pid) - spent)
    return percentiles(wall[1:]), percentiles(processor[1:])


def percentiles(values: list[float]) -> str:
    values = sorted(values)
    return f"{values[len(values) // 2]:.2f} / {values[min(len(values) - 1, round(0.99 * len(values)))]:.2f}"


def running_ms(pid: int) -> float:
    """For how long the threads of a process have run so far."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it ended
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e6


def at(uri: str, line: int) -> Row:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": 6}}


def usage(process: int) -> tuple[float, float]:
    """(resident MB, CPU seconds) of a process and its children."""
    from warpline.lsp.worker.family import descendants

    memory = spent = 0.0
    for pid in (process, *descendants(process)):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        memory += int(status.split("VmRSS:")[1].split()[0]) / 1024 if "VmRSS:" in status else 0
        spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return memory, spent


def show(title: str, rows: list[Row]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [
        [f"{value:.2f}" if isinstance(value := row.get(key), float) else str(value or "–") for key in columns]
        for row in rows
    ]
    print(f"\n{title}" + (" (p50 / p99, ms)" if title != "start" else "") + "\n")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in cells:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
