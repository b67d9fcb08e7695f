"""Tensors that are made on the host and copied to the device: what they take, and what is left of it."""

from __future__ import annotations

from collections.abc import Collection

from warpline.model import costs as assumed
from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.copies import host_to_device
from warpline.rulekit.graph.storages import VIEWS
from warpline.rulekit.saving import Spent
from warpline.wire.sites import HostTensor, facts_of

#: What makes a tensor of one number. Inductor folds these, with their copy to the device, into one that is
#: made there (``joint_graph.constant_fold_uniform_value``).
_UNIFORM = frozenset({"zeros", "ones", "full"})


def making_ms(cost: LineCost) -> float:
    """What a line takes for tensors on the host and their copies: all of it where the device does nothing but
    copy there, else its operators without kernels (views left out), and the copies."""
    if not any(kernel.kind == "kernel" for kernel in cost.kernels):
        return cost.step_ms
    made = [op for op in cost.ops if op.outer and not op.launches and op.phase == "forward"]
    on_host = sum(op.cpu_ms for op in made if op.name.removeprefix("aten::") not in VIEWS)
    copied = host_to_device(cost, pageable=True) + host_to_device(cost, pageable=False)
    return min(cost.step_ms, on_host + copied)


def made_on_device(own: Spent) -> tuple[Scale, ...]:
    """The lines with these tensors made on the device."""
    return tuple(
        Scale((cost.place,), device=left, host=left, assumed=True)
        for cost, each in own.items()
        for left in [1 - each / cost.step_ms * (1 - assumed.value("made-on-device"))]
    )


def uniform(context: Context, places: Collection[tuple[str, int]]) -> Spent:
    """Lines among ``places`` that make tensors of one number on the host, and what that takes."""
    sites = [site for site in context.sites(HostTensor.KIND) if site.place in places]
    made = {
        site.place
        for site in sites
        for one in [facts_of(HostTensor, site)]
        if one.op in _UNIFORM and (one.device or "cpu") == "cpu" and "cuda" in (one.to or "")
    }
    return Spent(context.costs(made), making_ms)
