"""The parameters of an optimizer that a trial needs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from warpline.devices import can
from warpline.model.change import Replace
from warpline.model.profile import Profile
from warpline.wire.probing import Question, Tensor
from warpline.wire.sites import Optimizer, facts_of

#: The most tensors of a trial, and numbers in them on a GPU and on the host. Of more, every second or third
#: tensor is taken: an optimizer's cost is a sum over its tensors.
MOST_TENSORS, MOST_ON_GPU, MOST_ON_HOST = 300, 1 << 27, 1 << 22


def questions_for(profile: Profile, change: Replace) -> list[tuple[Question, float]]:
    """The optimizer that is stepped at the change's lines, or that is written out there, with how many times
    the numbers of the trial it has; nothing where a run does not say its shapes."""
    for shapes in (*_stepped(profile, change), _written_out(profile, change)):
        some = _some(shapes, profile.manifest.device.kind)
        if len(some) > 1:
            options = (*change.options, *(("momentum",) if change.options[0] == "SGD" else ()))
            tensors = tuple(Tensor(shape) for shape in some)
            times = sum(map(prod, shapes)) / max(1, sum(map(prod, some)))
            return [(Question("optimizer", tensors, options), times)]
    return []


def _stepped(profile: Profile, change: Replace) -> Iterator[list[tuple[int, ...]]]:
    for site in profile.facts.sites:
        if site.kind == Optimizer.KIND and set(site.uses) & set(change.places):
            about = facts_of(Optimizer, site)
            shapes = about.all_shapes if "apart" in change.options else about.shapes
            yield [tuple(shape) for count, *shape in shapes or [] for _ in range(count)]


def _written_out(profile: Profile, change: Replace) -> list[tuple[int, ...]]:
    """The shapes that the square root of the update is taken of: once for each parameter."""
    return [
        op.shapes[0]
        for cost in profile.lines
        if cost.place in change.places
        for op in cost.ops
        if op.name in ("aten::sqrt", "aten::sqrt_") and op.shapes
        for _ in range(round(op.count))
    ]


def _some(shapes: list[tuple[int, ...]], device: str) -> list[tuple[int, ...]]:
    whole, most = sum(map(prod, shapes)), MOST_ON_GPU if can(device, "kernels") else MOST_ON_HOST
    every = max(1, -(-len(shapes) // MOST_TENSORS), -(-whole // most))
    return sorted(shapes, key=prod)[every // 2 :: every]
