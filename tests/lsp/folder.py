"""Run folders built by hand, for tests that need exact numbers on exact lines."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from warpline import runs
from warpline.model import report as r
from warpline.wire.run import DeviceFacts, Facts, Manifest, Request

MARK = re.compile(r"#\s*(\d+(?:\.\d+)?) ms\b")


def write_run(
    folder: Path,
    sources: dict[Path, str],
    script: Path | None = None,
    findings: Sequence[r.Finding] = (),
    step_ms: float | None = None,
    name: str | None = None,
    argv: tuple[str, ...] = (),
    report: bool = True,
    scale: float = 1.0,
    device: str = "Test CPU",
    spread: float = 0.0,
    request: Request | None = None,
) -> Path:
    """A complete run in ``folder/.warpline/runs``: every line that ends in ``# 12.5 ms`` cost that much.

    ``spread``: how far the timed steps lie from their mean at most, as a share of it.
    """
    run = runs.new_run(runs.runs_folder(folder))
    if name is not None:
        run = run.with_name(name)
    run.mkdir()
    script = script or next(iter(sources))
    made = tuple(line for path, text in sources.items() for line in lines(path, text, scale))
    total = step_ms if step_ms is not None else sum(line.step_ms for line in made)
    manifest = Manifest(
        format=1,
        created_ns=time.time_ns(),
        script=str(script),
        argv=argv,
        python_version="3.11.0",
        torch_version="2.13.0",
        device=DeviceFacts(),
        request=request or Request(target=str(script), argv=argv, cwd=str(folder)),
        step_source="optimizer",
        timed_ns=tuple(int(total * 1e6 * (1 + spread * (n - 5) / 5)) for n in range(11)),
        captured=((0, 1),),
        line_events="none",
        roots=(str(folder),),
    )
    runs.write_json(run, "sources.json", {str(path): text for path, text in sources.items()})
    runs.write_json(run, "facts.json", Facts())
    runs.write_json(run, "manifest.json", manifest)
    if report:
        write_report(run, script, made, findings, total, argv, device)
    return run


def write_report(
    run: Path,
    script: Path,
    made: tuple[r.Line, ...],
    findings: Sequence[r.Finding],
    total: float,
    argv: tuple[str, ...] = (),
    device: str = "Test CPU",
) -> None:
    runs.write_json(
        run,
        "report.json",
        r.Report(
            format=1,
            script=str(script),
            argv=argv,
            environment=r.Environment("3.11.0", "2.13.0", r.Device("cpu", device, 1)),
            steps=r.Steps(5, total, total * 1.5, 1.5, 90.0),
            lines=made,
            unattributed=r.Unattributed(0.0, 0.0),
            attributed=r.Attributed(100.0, 100.0),
            findings=tuple(findings),
            notes=(),
        ),
    )


def lines(path: Path, text: str, scale: float = 1.0) -> list[r.Line]:
    """The costs that the text's own comments name."""
    found, function = [], "<module>"
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"(\s*)def (\w+)", line):
            function = match[2]
        elif line[:1].strip():
            function = "<module>"
        if match := MARK.search(line):
            ms = float(match[1]) * scale
            found.append(cost(path, number, function, ms))
    return found


def cost(path: Path, line: int, function: str, ms: float) -> r.Line:
    return r.Line(
        file=str(path),
        line=line,
        function=function,
        step_ms=ms,
        device_ms=ms * 0.75,
        forward_ms=ms * 0.25,
        backward_ms=ms * 0.5,
        recompute_ms=0.0,
        idle_ms=ms * 0.25,
        cpu_ms=ms * 0.5,
        sync_ms=0.0,
        calls=2.0,
        launches=3.0,
        memory_bytes=3 * 2**20,
        kernels=(r.KernelUse("void gemm<float, 128>(float*)", "backward", 2.0, ms * 0.5),),
        ops=(r.OpUse("aten::mm", "forward", 1.0, ms * 0.25, ((64, 128), (128, 32))),),
        roofline=r.Roofline(2e9, 1e6, 62.0, "compute"),
    )


def finding(
    path: Path,
    line: int,
    rule: str = "fp32-matmul",
    cause: tuple[Path, int] | None = None,
    fixes: tuple[r.Fix, ...] = (),
    message: str = "The matrix products run in fp32.",
    severity: r.Severity = "warning",
) -> r.Finding:
    where, at = cause or (path, line)
    return r.Finding(
        id=f"{rule}-{path.name}-{line}",
        rule=rule,
        severity=severity,
        file=str(path),
        line=line,
        cause=r.SourceLine(str(where), at),
        message=message,
        evidence=(r.Evidence("device time", 12.5, "ms"),),
        predicted=r.Predicted(10.0, 2.5, "simulated"),
        fixes=fixes,
    )
