"""Lines whose elementwise and reducing kernels a compiler could fuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from warpline.model.change import Change, Fuse, RemoveLaunches
from warpline.model.profile import Kernel, LineCost
from warpline.rulekit.graph import Passes
from warpline.rulekit.kernels import is_pointwise, is_product

#: Passes over the same tensors that a compiler would make one: fewer are seldom worth compiling for.
_PASSES = 3


@dataclass(frozen=True)
class Run:
    """Neighbouring lines with nothing between their passes that could not be fused, or one line with
    ``products`` matrix products or convolutions each time it runs.

    ``recorded``: what is known of the passes of each line, where the step's operators were recorded."""

    costs: tuple[LineCost, ...]
    products: float
    recorded: Mapping[tuple[str, int], Passes] | None = None

    @property
    def kernels(self) -> list[Kernel]:
        """The passes, of both phases; what only the backward pass of a product makes is none of them."""
        found: list[Kernel] = []
        for cost in self.costs:
            share = 1.0 if self.recorded is None else self.recorded.get(cost.place, Passes()).share
            found += [
                replace(kernel, count=kernel.count * share, device_ms=kernel.device_ms * share)
                for kernel in cost.kernels
                if is_pointwise(kernel.name) and _passes(cost) and share
            ]
        return found

    @property
    def passes(self) -> float:
        """Forward passes that may follow one another, each time the lines run."""
        return sum(self._passes_of(cost) for cost in self.costs) / max(1.0, self.products)

    def has_passes(self, cost: LineCost) -> bool:
        """Whether the line has a part in them, as far as that is known."""
        return self.recorded is None or self._passes_of(cost) > 0

    def _passes_of(self, cost: LineCost) -> float:
        if self.recorded is None:
            return _passes(cost) / _times(cost)
        return self.recorded.get(cost.place, Passes()).count

    @property
    def change(self) -> Change:
        places = tuple(cost.place for cost in self.costs)
        # Only what follows one another in the trace is merged where products lie between.
        return RemoveLaunches(places, keep=1.0) if self.products else Fuse(places)


def chains(costs: Sequence[LineCost], recorded: Mapping[tuple[str, int], Passes] | None) -> list[Run]:
    """The runs of ``costs``, given in the order in which they run, with enough passes to fuse."""
    return [run for run in runs_of(costs, recorded) if run.passes >= _PASSES]


def runs_of(costs: Sequence[LineCost], recorded: Mapping[tuple[str, int], Passes] | None) -> Iterator[Run]:
    """Lines in the order in which they run, cut where a product stands."""
    together: list[LineCost] = []
    for cost in costs:
        products = sum(
            op.count for op in cost.ops if op.phase == "forward" and is_product(op.name) and op.launches
        )
        if products:
            yield Run(tuple(together), 0.0, recorded)
            yield Run((cost,), products / _times(cost), recorded)
            together = []
        else:
            together.append(cost)
    yield Run(tuple(together), 0.0, recorded)


def _passes(cost: LineCost) -> float:
    return sum(
        kernel.count for kernel in cost.kernels if kernel.phase == "forward" and is_pointwise(kernel.name)
    )


def _times(cost: LineCost) -> float:
    """How often the line runs a step; unknown, as often as its rarest pass."""
    rarest = min((kernel.count for kernel in cost.kernels if kernel.phase == "forward"), default=1.0)
    return max(cost.calls or rarest, 1e-9)


def passes_ms(runs: Sequence[Run]) -> float:
    """Milliseconds of the passes. A line has no more than its share of the step."""
    kernels = sum(kernel.device_ms for run in runs for kernel in run.kernels)
    return min(kernels, sum(cost.step_ms for run in runs for cost in run.costs if run.has_passes(cost)))
