"""The resource that bounds a step, and the lower bound of its time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpline.model.profile import Profile
from warpline.model.report import Resource
from warpline.simulate.device import Rates
from warpline.simulate.replay import Clock, Feed, replay
from warpline.simulate.timeline import LAUNCH, LOADER, WORK, Timeline
from warpline.simulate.work import PRODUCT
from warpline.trace.columns import Bools, take
from warpline.trace.names import Names

#: Beginnings of the names of collectives: kernels and ranges that exchange data between ranks.
_EXCHANGES = ("nccl", "gloo:", "c10d::")


def limiting_resource(timeline: Timeline, clock: Clock, feed: Feed | None, names: Names) -> Resource:
    """The resource that shortens the step most if its time is halved. Each one is halved in a replay."""
    exchanged = names.containing(*_EXCHANGES)
    loading = timeline.kind == LOADER
    product = timeline.kernel_work == PRODUCT
    exchange = exchanged[timeline.kernel_name]
    own = ~loading & ((timeline.kind == WORK) | (timeline.kind == LAUNCH))
    called = own & (timeline.op >= 0)
    nothing = np.zeros(len(timeline.host_ns), bool)
    none = np.zeros(len(timeline.kernel_ns), bool)
    host: dict[Resource, Bools]
    device: dict[Resource, Bools]
    if timeline.has_kernels:
        host = {"host": own & ~called, "launches": called}
        device = {"compute": product & ~exchange, "memory": ~product & ~exchange, "communication": exchange}
    else:
        # The device is the CPU: its work is the operators.
        between = exchanged[take(timeline.op_name, timeline.op)] & called
        works = timeline.work == PRODUCT
        host = {
            "host": own & ~called,
            "compute": called & works & ~between,
            "memory": called & ~works & ~between,
            "communication": between,
        }
        device = {}
    took: dict[Resource, float] = {}
    for name in (*host, *device):
        halved = replace(
            timeline,
            host_ns=np.where(host.get(name, nothing), timeline.host_ns / 2, timeline.host_ns),
            kernel_ns=np.where(device.get(name, none), timeline.kernel_ns / 2, timeline.kernel_ns),
        )
        took[name] = replay(halved, clock, feed)
    quicker = replace(feed, period_ns=feed.period_ns / 2, take_ns=feed.take_ns / 2) if feed else None
    waiting = replace(timeline, host_ns=np.where(loading, timeline.host_ns / 2, timeline.host_ns))
    took["loader"] = replay(waiting, clock, quicker)
    return min(took, key=took.__getitem__)


def floor_ms(timeline: Timeline, clock: Clock, rates: Rates | None, profile: Profile | None) -> float:
    """A lower bound of the step time in ms. Each line needs the larger of two times: its operations at the
    device's fastest precision, and its bytes at the device's bandwidth. If these rates are unknown, the bound
    is the present time of the matrix products.
    """
    if rates is not None and profile is not None:
        best = max(rates.flops.values())
        return sum(
            max(cost.roofline.flops / best, cost.roofline.bytes / rates.bytes_per_s) * 1e3
            for cost in profile.lines
            if cost.roofline is not None
        )
    if timeline.has_kernels:
        spent = float(timeline.kernel_ns[timeline.kernel_work == PRODUCT].sum()) * clock.device
    else:
        spent = float(timeline.host_ns[(timeline.op >= 0) & (timeline.work == PRODUCT)].sum()) * clock.host
    return spent / timeline.steps / 1e6
