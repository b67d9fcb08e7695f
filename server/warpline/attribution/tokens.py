"""Generation: a step is one forward pass, which makes one token. The first one of a call reads the prompt."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.model import units
from warpline.trace.columns import Bools


def token_note(scene: Scene, accounted: Account) -> str:
    """A note on the time per token, separately for prefill and decode. "" if ``generate`` was not called, or
    if a step is not one forward pass. Wall times come from the timing window, device times from the captured
    steps; a prefill that these lack is timed and recorded after them.
    """
    facts, manifest = scene.trace.facts, scene.trace.manifest
    timed = np.array(manifest.timed_ns, np.float64) / 1e6
    if manifest.step_source != "forward" or not (facts.generate_ns or facts.prefill_steps) or not len(timed):
        return ""
    first = np.zeros(len(timed), bool)
    first[[at for at in facts.prefill_steps if 0 <= at < len(timed)]] = True
    captured = _first_forwards(scene)
    device = _device_ms(scene, accounted)
    prefill, of_prefill = timed[first], device[captured]
    if not len(prefill) and facts.prefill_ns is not None:
        prefill = np.array([facts.prefill_ns / 1e6])
    if not len(of_prefill) and facts.prefill_device_ns is not None:
        of_prefill = np.array([facts.prefill_device_ns / 1e6])
    said = [
        _kind("decode", timed[~first], device[~captured], "a token"),
        _kind("prefill", prefill, of_prefill, "a call of generate"),
    ]
    return "a step is one forward pass of `generate`: " + "; ".join(words for words in said if words)


def _kind(
    name: str, wall_ms: np.ndarray[tuple[int], np.dtype[np.float64]], device_ms: object, per: str
) -> str:
    if not len(wall_ms):
        return f"{name}: not timed"
    device = np.asarray(device_ms, np.float64)
    wall = float(np.mean(wall_ms))
    words = f"{name} {units.ms(wall)} {per} ({len(wall_ms)} timed)"
    if not len(device):
        return f"{words}, not recorded"
    busy = min(float(np.mean(device)), wall)
    return f"{words}: the device is busy for {units.ms(busy)} of it, the rest is host time"


def _first_forwards(scene: Scene) -> Bools:
    """Which captured steps begin with the first forward after a call of ``generate``."""
    spans = scene.trace.manifest.captured
    length = max((end - start for start, end in spans), default=0)
    before = [start - length for start, _ in spans[:1]] + [start for start, _ in spans[:-1]]
    begun = scene.trace.facts.generate_ns
    found: Bools = np.array(
        [any(low <= at < start for at in begun) for low, (start, _) in zip(before, spans, strict=True)], bool
    )
    return found


def _device_ms(scene: Scene, accounted: Account) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Device time in ms of the kernels that each captured step queued."""
    trace = scene.trace
    if trace.on_gpu:
        known = trace.kernels.launch >= 0
        when, ms = trace.host.start_ns[trace.kernels.launch[known]], accounted.kernel_ms[known]
    else:
        when, ms = trace.host.start_ns, accounted.op_ms
    sums = [
        float(ms[(when >= start) & (when < end)].sum()) * trace.steps
        for start, end in trace.manifest.captured
    ]
    return np.array(sums, np.float64)
