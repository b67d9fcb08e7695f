"""The cost of some operators of some lines, and the cost that remains when one call replaces them."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.change import Change, Fuse, Replace
from warpline.model.profile import LineCost, Op
from warpline.wire.probing import KINDS


@dataclass(frozen=True, slots=True)
class Costed:
    """``costs``: of all lines that compute it. ``shares``: the part of each line's cost that is its own, 0 to
    1 (a line may call other things as well)."""

    costs: tuple[LineCost, ...]
    shares: tuple[float, ...]

    @property
    def hottest(self) -> tuple[str, int]:
        """File and line that take most of the step."""
        cost = max(self.costs, key=lambda cost: cost.step_ms)
        return cost.place

    @property
    def step_ms(self) -> float:
        """Milliseconds a step of these operators: each line's, times their share of it."""
        return sum(cost.step_ms * share for cost, share in zip(self.costs, self.shares, strict=True))

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """File and line of each cost, in order."""
        return tuple(cost.place for cost in self.costs)

    @property
    def forward(self) -> list[Op]:
        """The operators of the lines' forward passes."""
        return [op for cost in self.costs for op in cost.ops if op.phase == "forward"]

    def fused_ms(self) -> float:
        """The least that a fused version costs, in ms: the widest kernel of each phase (on a CPU, the widest
        op)."""
        widest: dict[str, float] = {}
        for cost, share in zip(self.costs, self.shares, strict=True):
            for use in cost.kernels or cost.ops:
                widest[use.phase] = max(widest.get(use.phase, 0.0), use.device_ms * share)
        return min(sum(widest.values()), self.step_ms)

    def fusing(self) -> Fuse:
        """The change that one fused call is, for the simulation."""
        keep = self.fused_ms() / self.step_ms if self.step_ms else 1.0
        return Fuse(self.places, keep=keep, shares=self.shares)

    def replaced(self, by: str, *options: str, otherwise: Change | None = None) -> Change:
        """The change that the call ``by`` is, which can be tried where it is one of ``KINDS``.

        ``otherwise``: what is simulated where it was not tried (``fusing()``)."""
        fused = otherwise or self.fusing()
        return Replace(by, self.places, fused, options, self.shares) if by in KINDS else fused
