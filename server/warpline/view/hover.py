"""The card of one line: what its time is made of. Markdown for clients that show it, else plain text.

Names in a card come from a run folder, which may be a stranger's: they are shown as they are, and
never become a link, an image or a command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpline.devices import can
from warpline.model.kernel_name import readable
from warpline.model.report import Finding, KernelUse, Line, OpUse, Report
from warpline.view import gains, units
from warpline.view.anchor_lines import Standing
from warpline.view.hints import share
from warpline.view.inside import Caller, largest, outside, parts
from warpline.view.text import printable
from warpline.view.tokens import kinds

_TOP = 3
_NAME = 64
_SPECIAL = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)|(?<=:)//)")


@dataclass(frozen=True, slots=True)
class Table:
    """A time, a name (shown as code) and a few words in each row.

    Editors draw tables without space between columns: so no two numbers are side by side.
    """

    head: tuple[str, str, str]
    rows: tuple[tuple[str, str, str], ...]


def card(
    line: Standing,
    report: Report,
    findings: Sequence[str] = (),
    loader_ms: float = 0.0,
    markdown: bool = True,
    inside: str = "",
    callers: Sequence[Caller] = (),
) -> str:
    """Everything known of one line, the most important first: editors show the first dozen lines.

    ``findings``: what was measured of fixes for it (what is wrong is in the diagnostic already);
    ``loader_ms``: part of it in which the next batch was waited for; ``inside``: what Nsight Compute said;
    ``callers``: of a library's line, the lines of the user's that lead there.
    """
    text = _Markdown() if markdown else _Plain()
    part = units.percent(share(line.step_ms, report.steps.step_ms))
    functions = ", ".join(dict.fromkeys(cost.function for cost in line.costs))
    head = text.strong(f"{part} of the step · {units.ms(line.step_ms)}")
    blocks = [f"{head} of {units.ms(report.steps.step_ms)} " + text.code(functions)]
    if line.stale:
        blocks.append(
            text.plain("The line has changed since the run: these numbers are for the earlier version.")
        )
    beside = can(report.environment.device.kind, "kernels")
    blocks.append(text.plain(made_of(line, loader_ms, beside)))
    blocks += [text.plain(words) for words in findings]
    blocks.append(text.table(_tokens(line, beside)))
    blocks.append(text.table(_inside(line, report.steps.step_ms)))
    blocks.append(text.table(_callers(callers)))
    kernels = [kernel for cost in line.costs for kernel in cost.kernels]
    ops = [op for cost in line.costs for op in cost.ops]
    if kernels:
        blocks.append(text.table(_kernels(kernels)))
    if ops:
        blocks.append(text.table(_ops(ops, "device" if beside else "time")))
    blocks += [text.plain(_roofline(cost)) for cost in line.costs if cost.roofline]
    blocks.append(text.plain(inside))
    device = report.environment.device
    blocks.append(text.plain(f"Measured on {device.name or device.kind}."))
    return "\n\n".join(block for block in blocks if block)


def made_of(line: Standing, loader_ms: float = 0.0, beside: bool = True) -> str:
    """``device 12.1 ms (forward 4.00, backward 8.10), device idle 3.80 ms, host 7.90 ms; 2 calls a step``.

    ``beside``: the device works beside the host. On a CPU the line is its operators' time and the rest.
    """

    def total(name: str) -> float:
        return float(sum(getattr(cost, name) for cost in line.costs))

    phases = [
        f"{name} {units.milliseconds(total(field))}"
        for name, field in (
            ("forward", "forward_ms"),
            ("backward", "backward_ms"),
            ("recomputation", "recompute_ms"),
        )
        if total(field) > 0
    ]
    times = [
        ("device" if beside else "operators", total("device_ms")),
        ("device idle" if beside else "outside of operators", total("idle_ms")),
        ("host", total("cpu_ms") if beside else 0.0),
        ("waiting for the device", total("sync_ms")),
        ("waiting for data", loader_ms),
    ]
    words = [f"{name} {units.ms(value)}" for name, value in times if value > 0]
    if total("device_ms") > 0 and len(phases) > 1:
        words[0] += f" ({', '.join(phases)})"
    # A CPU launches nothing: what is counted there are its operators.
    started = ("launch", "launches") if beside else ("operator", "operators")
    counts = [
        f"{units.count(total(name))} {one if total(name) == 1 else more}"
        for name, (one, more) in (("calls", ("call", "calls")), ("launches", started))
        if total(name) > 0
    ]
    counted = f"{' and '.join(counts)} a step" if counts else ""
    memory = f"{units.size(total('memory_bytes'))} at the memory peak" if total("memory_bytes") > 0 else ""
    return "; ".join(filter(None, (", ".join(words), counted, memory)))


def plain(words: str, markdown: bool) -> str:
    """``words`` as a card of their own."""
    return (_Markdown() if markdown else _Plain()).plain(words)


def gain(finding: Finding) -> str:
    """`` (1.10x, 1.09 to 1.12)``, what is known of the fix; empty when nothing is."""
    words = gains.short(finding)
    return f" ({words})" if words else ""


def _inside(line: Standing, step_ms: float) -> Table:
    """The modules and functions of libraries that take most of the line, what runs outside of all modules
    (the optimizer, copies of the batch), and the rest."""
    inside = [entry for cost in line.costs for entry in cost.inside]
    found = [*largest(line.costs, step_ms)[:_TOP], *outside(inside, step_ms)]
    found = list(dict.fromkeys(found))[: 2 * _TOP]
    rows = [(units.ms(part.step_ms), _short(part.name), part.place) for part in found]
    rest = [part for part in parts(inside) if part not in found]
    if found and rest:
        rows.append((units.ms(sum(part.step_ms for part in rest)), "the rest", f"{len(rest)} more"))
    return Table(("of the step", "inside", "costliest line"), tuple(rows))


def _tokens(line: Standing, beside: bool) -> Table:
    rows = [(units.ms(kind.step_ms), kind.name, kind.about) for kind in kinds(line.costs, beside)]
    return Table(("of the step", "passes", ""), tuple(rows))


def _callers(callers: Sequence[Caller]) -> Table:
    rows = [
        (units.ms(each.step_ms), _short(printable(each.part)) or "-", _place(each)) for each in callers[:_TOP]
    ]
    return Table(("of the step", "part", "your line"), tuple(rows))


def _place(caller: Caller) -> str:
    return f"{printable(Path(caller.file).name)}:{caller.line}"


def _kernels(kernels: Sequence[KernelUse]) -> Table:
    top = sorted(kernels, key=lambda kernel: -kernel.device_ms)[:_TOP]
    rows = [
        (
            units.ms(k.device_ms),
            _short(readable(k.name)),
            f"{k.phase}, {_times(k.count, 'launch', 'launches')}",
        )
        for k in top
    ]
    return Table(("device", "kernel", ""), tuple(rows))


def _ops(ops: Sequence[OpUse], time: str) -> Table:
    top = sorted(ops, key=lambda op: -op.device_ms)[:_TOP]
    rows = [
        (
            units.ms(op.device_ms),
            _short(f"{op.name} {_shapes(op)}".strip()),
            f"{op.phase}, {_times(op.count, 'call', 'calls')}",
        )
        for op in top
    ]
    return Table((time, "operator", ""), tuple(rows))


def _times(count: float, one: str, more: str) -> str:
    return f"{units.count(count)} {one if count == 1 else more}"


def _shapes(op: OpUse) -> str:
    return " ".join("x".join(map(str, shape)) for shape in op.shapes if shape)


def _roofline(cost: Line) -> str:
    roofline = cost.roofline
    if roofline is None:
        return ""
    return (
        f"{units.percentage(roofline.percent_of_peak)} of the device's peak rate, bound by "
        f"{'launch overhead' if roofline.bound == 'launch' else roofline.bound}: "
        f"{units.rate(roofline.flops, 'FLOP')}, {units.size(roofline.bytes)} transferred"
    )


def _short(name: str) -> str:
    words = " ".join(name.split())
    return words if len(words) <= _NAME else words[: _NAME - 1] + "…"


class _Markdown:
    def plain(self, text: str) -> str:
        return _SPECIAL.sub(r"\\\1", " ".join(text.split()))

    def strong(self, text: str) -> str:
        return f"**{self.plain(text)}**"

    def code(self, text: str) -> str:
        words = _short(text).replace("`", "'").replace("|", "¦")
        return f"`{words}`" if words else ""

    def table(self, table: Table) -> str:
        if not table.rows:
            return ""
        head = "| " + " | ".join(table.head) + " |\n|--:|:--|:--|"
        rows = (f"| {time} | {self.code(name)} | {self.plain(rest)} |" for time, name, rest in table.rows)
        return head + "\n" + "\n".join(rows)


class _Plain(_Markdown):
    def plain(self, text: str) -> str:
        return " ".join(text.split())

    def strong(self, text: str) -> str:
        return self.plain(text)

    def code(self, text: str) -> str:
        return _short(text)

    def table(self, table: Table) -> str:
        if not table.rows:
            return ""
        rows = [table.head, *table.rows]
        width, longest = (max(len(row[n]) for row in rows) for n in (0, 1))
        lines = (f"{time.rjust(width)}  {name.ljust(longest)}  {rest}" for time, name, rest in rows)
        return "\n".join(line.rstrip() for line in lines)
