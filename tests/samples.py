"""A small report written by hand, for what shows reports: every field has something in it."""

from __future__ import annotations

from dataclasses import replace

from warpline.model import profile as p
from warpline.model import report as r
from warpline.wire.run import DeviceFacts, Facts, Manifest, Request

SCRIPT = "/home/ada/work/train.py"
MODEL = "/home/ada/work/model.py"

SOURCES = {
    SCRIPT: "import torch\nfrom model import Net\n\nloader = DataLoader(data)\nfor x, y in loader:\n"
    "    loss = net(x.cuda(), y)\n    loss.backward()\n    print(loss.item())\n",
    MODEL: "class Net:\n    def forward(self, x):\n        h = self.a(x)\n\n\n\n"
    "        h = h / h.std()\n        return h\n",
}


def line(file: str, number: int, function: str, **costs: float) -> r.Line:
    empty = r.Line(file, number, function, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0)
    return replace(empty, **costs)  # type: ignore[arg-type]


def report(**changes: object) -> r.Report:
    """10 ms a step: 6 at the loader, 2 + 1.5 in the model, 0.4 at ``.item()``, 0.1 nowhere."""
    made = r.Report(
        format=r.FORMAT,
        script=SCRIPT,
        argv=("--epochs", "1"),
        environment=r.Environment("3.12.1", "2.13.0", r.Device("cuda", "NVIDIA H200", 1)),
        steps=r.Steps(5, 10.0, 15.0, 1.5, 35.0),
        lines=(
            line(SCRIPT, 5, "<module>", step_ms=6.0, idle_ms=6.0, cpu_ms=6.0),
            replace(
                line(MODEL, 3, "Net.forward", step_ms=2.0, device_ms=2.0, forward_ms=0.7, backward_ms=1.3),
                launches=3,
                kernels=(
                    r.KernelUse("gemm<float>", "forward", 1, 0.7),
                    r.KernelUse("gemm2", "backward", 2, 1.3),
                ),
                ops=(r.OpUse("aten::addmm", "forward", 1, 0.7, ((64, 8), (8, 8))),),
                roofline=r.Roofline(6.2e9, 1.2e6, 6.0, "memory"),
            ),
            line(MODEL, 7, "Net.forward", step_ms=1.5, device_ms=1.5, forward_ms=1.5, memory_bytes=2**21),
            line(SCRIPT, 8, "<module>", step_ms=0.4, idle_ms=0.4, cpu_ms=0.4, sync_ms=0.3),
        ),
        unattributed=r.Unattributed(0.01, 0.1),
        attributed=r.Attributed(99.7, 99.0),
        findings=(
            r.Finding(
                id="a1b2",
                rule="loader-without-workers",
                severity="warning",
                file=SCRIPT,
                line=4,
                cause=r.SourceLine(SCRIPT, 5),
                message="The step waits for the loader, which works in the main process.",
                evidence=(r.Evidence("exposed wait", 60.0, "percent of step"), r.Evidence("wait", 6.0, "ms")),
                predicted=r.Predicted(4.0, 2.5, "simulated"),
                fixes=(
                    r.Fix(
                        "Add num_workers=8", "safe", (r.Edit(SCRIPT, (4, 24), (4, 24), ", num_workers=8"),)
                    ),
                ),
            ),
            r.Finding(
                id="c3d4",
                rule="sync-in-step",
                severity="information",
                file=SCRIPT,
                line=8,
                cause=r.SourceLine(SCRIPT, 8),
                message="The host waits for the device at every step.",
                evidence=(),
                measured=r.Measured(1.04, 1.03, 1.05, 0.0, 1.0),
            ),
        ),
        notes=("the clocks were throttled",),
        composition=r.Composition(5.5, 0.75, 2.0, 1.25, 0.25, 0.0, 0.25),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def profile(sources: dict[str, str] = SOURCES, **changes: object) -> p.Profile:
    """What goes with :func:`report` and is not in it: sources, two marks, a fused kernel."""
    made = p.Profile(
        manifest=Manifest(
            format=1,
            created_ns=0,
            script=SCRIPT,
            argv=("--epochs", "1"),
            python_version="3.12.1",
            torch_version="2.13.0",
            device=DeviceFacts("cuda", "NVIDIA H200"),
            request=Request(),
            step_source="optimizer",
            timed_ns=(10_000_000,),
            captured=((0, 10_000_000),),
            line_events="monitoring",
            roots=(),
        ),
        facts=Facts(),
        steps=report().steps,
        lines=(),
        unattributed=r.Unattributed(0.01, 0.1),
        attributed=r.Attributed(99.7, 99.0),
        sources=sources,
        groups=(p.Group("triton_poi_fused_add", ((MODEL, 7), (MODEL, 3), (MODEL, 8)), 1.25),),
        marks=(
            p.Mark("forward", 1, 2.0, 0.2, 1.5, domain="net"),
            p.Mark("[b]load[/b]", 1, 6.0, 0.6, 0.0),
        ),
    )
    return replace(made, **changes)  # type: ignore[arg-type]
