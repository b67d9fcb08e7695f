"""One kernel from the inside: what Nsight Compute counted, by the kernel's own source lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from warpline.text.lines import line_at

#: Of ``kernel-….json`` in a run folder and of ``warpline kernel --json``.
KERNEL_FORMAT = 1


@dataclass(frozen=True, slots=True)
class KernelLine:
    """Sums over the instructions that were compiled from one source line."""

    file: str
    line: int
    sectors: float = 0.0  # 32-byte sectors of global memory that its loads and stores touched
    ideal_sectors: float = 0.0  # the same with every byte of a sector used
    stalls: dict[str, float] = field(default_factory=dict)  # reason -> samples of a warp waiting there
    text: str = ""  # the line as it was, without its indentation; "" where the file was not there

    @property
    def used_percent(self) -> float | None:
        """Bytes used of the bytes moved; None for a line that touches no global memory."""
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
        """Whether its lines still read as they did, in those files that ``texts`` knows the text of."""
        known = [line for line in self.lines if texts(line.file) is not None]
        return bool(known) and all(
            line.text == line_at(texts(line.file), line.line).strip() for line in known
        )

    def with_texts(self, texts: Callable[[str], str | None]) -> KernelInside:
        """The same with the lines' texts as they are now."""
        lines = (replace(line, text=line_at(texts(line.file), line.line).strip()) for line in self.lines)
        return replace(self, lines=tuple(lines))
