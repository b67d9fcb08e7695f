"""One kernel in detail: Nsight Compute's counters by the kernel's source lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from warpline.text.lines import line_at
from warpline.wire.places import Placed

#: Format number of ``kernel-….json`` in a run folder and of ``warpline kernel --json``.
KERNEL_FORMAT = 1


@dataclass(frozen=True, slots=True)
class KernelLine(Placed):
    """Sums over the instructions compiled from one source line."""

    file: str
    line: int
    sectors: float = 0.0  # 32-byte sectors of global memory that its loads and stores access
    ideal_sectors: float = 0.0  # the same if every byte of a sector were used
    stalls: dict[str, float] = field(default_factory=dict)  # reason -> samples of a warp stalled there
    text: str = ""  # the line when it ran, without its indentation; "" if its file was missing

    @property
    def used_percent(self) -> float | None:
        """Bytes used, in percent of the bytes moved; None for a line without global memory accesses."""
        return 100 * self.ideal_sectors / self.sectors if self.sectors else None


@dataclass(frozen=True, slots=True)
class KernelInside:
    name: str
    device: str
    duration_ms: float
    compute_percent: float | None  # of the multiprocessors' peak throughput
    memory_percent: float | None  # of the memory system's
    occupancy_percent: float | None  # warps active, of those that fit
    lines: tuple[KernelLine, ...]  # by file and line
    advice: tuple[tuple[str, str], ...] = ()  # Nsight Compute's own rules: (name, message)
    format: int = KERNEL_FORMAT

    def holds_for(self, texts: Callable[[str], str | None]) -> bool:
        """Whether its lines are unchanged, in the files that have a text in ``texts``."""
        known = [line for line in self.lines if texts(line.file) is not None]
        return bool(known) and all(
            line.text == line_at(texts(line.file), line.line).strip() for line in known
        )

    def with_texts(self, texts: Callable[[str], str | None]) -> KernelInside:
        """A copy with the present texts of the lines."""
        lines = (replace(line, text=line_at(texts(line.file), line.line).strip()) for line in self.lines)
        return replace(self, lines=tuple(lines))
