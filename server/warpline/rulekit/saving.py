"""What some work takes of lines, and changes that take time off them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from warpline.model.change import Change, RemoveSyncs, Replace, Scale, Together
from warpline.model.profile import LineCost, Op
from warpline.model.report import Inside
from warpline.rulekit.context import Context


class Spent(dict[LineCost, float]):
    """Milliseconds a step that some work takes of each line; lines on which it takes none are left out."""

    def __init__(self, costs: Iterable[LineCost], of: Callable[[LineCost], float]) -> None:
        super().__init__((cost, spent) for cost in costs if (spent := of(cost)) > 0)

    @property
    def total(self) -> float:
        """Milliseconds a step on all lines."""
        return sum(self.values())

    @property
    def hottest(self) -> LineCost:
        """The line on which it takes most. Raises ValueError where there is none."""
        return max(self, key=lambda cost: self[cost])

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The lines, as file and number."""
        return tuple(cost.place for cost in self)

    def tried(self, kind: str, *options: str, otherwise: Change) -> Replace:
        """Something else that can be tried does the work; ``otherwise`` is simulated if it was not tried."""
        shares = (min(1.0, spent / cost.device_ms) if cost.device_ms else 1.0 for cost, spent in self.items())
        return Replace(kind, self.places, otherwise, options, tuple(shares))

    def without(self, context: Context, share: float = 1.0) -> Together:
        """That share (0 to 1) of the work less, at most."""
        return Together(tuple(without(context, cost, share * spent) for cost, spent in self.items()))


def forward_share(cost: LineCost, wanted: Callable[[Op], bool]) -> float:
    """The share of a line's forward work, 0 to 1, that its ``wanted`` operators are at most: of the device's
    time, or of the host's in operators that the line calls itself. 1 for a line without operators."""
    forward = [op for op in cost.ops if op.phase == "forward"]
    shares = []
    for times in ([(op, op.device_ms) for op in forward], [(op, op.cpu_ms) for op in forward if op.outer]):
        if whole := sum(spent for _, spent in times):
            shares.append(sum(spent for op, spent in times if wanted(op)) / whole)
    return max(shares, default=1.0)


def less_device_time(
    costs: Collection[LineCost], saving_ms: float, *, at_most: bool = False, assumed: bool = False
) -> Scale:
    """``saving_ms`` a step less on the device at the lines of ``costs``; what else they do there stays.

    ``at_most``: or less, and nothing in the run says how much. ``assumed``: by a figure of
    ``model/costs.json``.
    """
    whole = sum(cost.device_ms for cost in costs)
    left = 1 - min(1.0, saving_ms / whole) if whole > 0 else 1.0
    places = tuple(cost.place for cost in costs)
    return Scale(places, device=left, at_most=at_most, assumed=assumed)


def without(context: Context, cost: LineCost, saved_ms: float) -> Scale:
    """``saved_ms`` a step less, at most, of the operators on one line; 0 if it has no device time."""
    left = max(0.0, 1 - saved_ms / cost.device_ms) if cost.device_ms > 0 else 1.0
    return leaving(context, cost.place, left)


def leaving(context: Context, place: tuple[str, int], left: float, *, apart: bool = False) -> Scale:
    """The operators of one line take ``left`` (0 to 1) of their time, at the least. On a CPU, where operators
    are the host's work, its time shrinks with them. ``apart``: other findings are about other parts of it."""
    return Scale((place,), left, 1.0 if context.on_gpu else left, at_most=True, apart=apart)


def without_inside(cost: LineCost, gone: Sequence[Inside]) -> Change:
    """The user's line without what the library's lines ``gone`` do below it: their waits, and their own work
    on the host, at least as long as the device is idle meanwhile, and on the device."""
    place = (cost.place,)
    on_host, on_device = sum(one.idle_ms for one in gone), sum(one.device_ms for one in gone)
    working = max(cost.cpu_ms - cost.sync_ms, on_host)
    left = Scale(
        place,
        device=max(0.0, 1 - on_device / cost.device_ms) if cost.device_ms else 1.0,
        host=1 - on_host / working if working else 1.0,
        apart=True,
    )
    return Together((RemoveSyncs(place), left))
