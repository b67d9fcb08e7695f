"""The step as one bar: what its time goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from warpline.html.escaped import text
from warpline.model.report import Composition
from warpline.view import units

#: Part -> what it means, as a tooltip.
PARTS = {
    "loader": "the device is idle while the main thread loads the next batch or waits for it",
    "host": "the device is idle while the host runs Python or queues work",
    "forward": "the device runs the forward pass, or copies",
    "backward": "the device runs the backward pass, or recomputes a forward pass",
    "optimizer": "the device runs the optimizer's kernels",
    "communication": "ranks exchange data",
    "idle": "device and host are both idle, or the time is unknown",
}
#: The bar's width in its own units, and the least of a part that is to be seen at all.
_WIDTH, _LEAST = 1000.0, 1.5


def bar(composition: Composition | None, caption: str = "", whole_ms: float = 0.0) -> str:
    """A bar as SVG and its legend, with each part's time and share.

    ``whole_ms``: what the full width stands for, where that is more than the step.
    """
    if composition is None:
        words = "This report was made by an older version, which did not split the step's time into parts."
        return f'<p class="soft">{words} Delete report.json in the run folder to make it again.</p>'
    if not used([composition]):
        return ""
    head = f'<div class="soft">{text(caption)}</div>' if caption else ""
    return (
        f'<figure class="composition">{head}{boxes(composition, whole_ms)}'
        f"{legend(used([composition]), composition)}</figure>"
    )


def boxes(composition: Composition | None, whole_ms: float = 0.0) -> str:
    """The bar alone; "" where nothing is known. ``whole_ms`` as for :func:`bar`."""
    shown = used([composition])
    if composition is None or not shown:
        return ""
    values = _values(composition)
    total = sum(values.values())
    made, left = [], 0.0
    for name in shown:
        width = values[name] / max(total, whole_ms) * _WIDTH
        tip = f"{name}: {units.ms(values[name])}, {units.percent(values[name] / total)}. {PARTS[name]}"
        made.append(
            f'<rect class="part {name}" x="{left:.2f}" y="0" width="{max(width, _LEAST):.2f}" height="40">'
            f"<title>{text(tip)}</title></rect>"
        )
        left += width
    label = ", ".join(f"{name} {units.percent(values[name] / total)}" for name in shown)
    return (
        '<svg class="bar" viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(label)}">{"".join(made)}</svg>'
    )


def legend(parts: Iterable[str], composition: Composition | None = None) -> str:
    """What the colours of ``parts`` mean; with the times of ``composition``."""
    values = _values(composition) if composition is not None else {}
    total = sum(values.values())
    items = []
    for name in parts:
        said = ""
        if total > 0:
            said = (
                f' <b data-part="{name}">{text(units.ms(values[name]))}</b> '
                f'<span class="soft">{text(units.percent(values[name] / total))}</span>'
            )
        items.append(
            f'<li title="{text(PARTS[name])}"><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">'
            f'<rect class="part {name}" width="10" height="10"></rect></svg>{name}{said}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def used(compositions: Iterable[Composition | None]) -> list[str]:
    """The parts that any of ``compositions`` has, in the order of the bar."""
    known = [_values(each) for each in compositions if each is not None]
    return [name for name in PARTS if any(values[name] > 0 for values in known)]


def _values(composition: Composition) -> Mapping[str, float]:
    return {name.removesuffix("_ms"): value for name, value in asdict(composition).items()}
