"""The step as one bar: what its time goes to."""

from __future__ import annotations

from dataclasses import asdict

from warpline.html.escaped import text
from warpline.model.report import Composition
from warpline.view import units

#: Part -> what it means, as a tooltip.
PARTS = {
    "loader": "the device has nothing to do while the main thread waits for, or makes, the next batch",
    "host": "the device has nothing to do while the host runs Python or queues work",
    "forward": "the device works on the forward pass, or copies",
    "backward": "the device works on the backward pass, or recomputes a forward",
    "optimizer": "the device works on what the optimizer queued",
    "communication": "ranks exchange data",
    "idle": "neither the device nor the host works, or nothing is known of that time",
}
#: The bar's width in its own units, and the least of a part that is to be seen at all.
_WIDTH, _LEAST = 1000.0, 1.5


def bar(composition: Composition | None, caption: str = "", whole_ms: float = 0.0) -> str:
    """A bar as SVG and its legend, with each part's time and share.

    ``whole_ms``: what the full width stands for, where that is more than the step.
    """
    if composition is None:
        words = "The report was made before it said what the step's time goes to."
        return f'<p class="soft">{words} Without report.json in the run\'s folder it is made anew.</p>'
    values = {name.removesuffix("_ms"): value for name, value in asdict(composition).items()}
    total = sum(values.values())
    if total <= 0:
        return ""
    shown = [name for name in PARTS if values[name] > 0]
    boxes, left = [], 0.0
    for name in shown:
        width = values[name] / max(total, whole_ms) * _WIDTH
        tip = f"{name}: {units.ms(values[name])}, {units.percent(values[name] / total)}. {PARTS[name]}"
        boxes.append(
            f'<rect class="part {name}" x="{left:.2f}" y="0" width="{max(width, _LEAST):.2f}" height="40">'
            f"<title>{text(tip)}</title></rect>"
        )
        left += width
    legend = "".join(
        f'<li title="{text(PARTS[name])}"><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="part {name}" width="10" height="10"></rect></svg>{name} '
        f'<b data-part="{name}">{text(units.ms(values[name]))}</b> '
        f'<span class="soft">{text(units.percent(values[name] / total))}</span></li>'
        for name in shown
    )
    label = ", ".join(f"{name} {units.percent(values[name] / total)}" for name in shown)
    head = f'<div class="soft">{text(caption)}</div>' if caption else ""
    return (
        f'<figure class="composition">{head}<svg class="bar" viewBox="0 0 1000 40" '
        f'preserveAspectRatio="none" role="img" aria-label="{text(label)}">{"".join(boxes)}</svg>'
        f'<ul class="legend">{legend}</ul></figure>'
    )
