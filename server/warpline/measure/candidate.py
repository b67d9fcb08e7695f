"""A candidate: fixes applied to the sources in memory, with a key that identifies them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Texts = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """``overlay``: path -> changed text of every file that differs from the plain script.

    ``base``: the same for the plain script (texts that are not saved yet), part of ``overlay`` too.
    ``fixes``: ids of the findings it remedies. ``work``: samples a step, of the plain script's
    step (2.0 where the batch is twice as large): step times are compared per sample.
    """

    fixes: tuple[str, ...]
    title: str
    overlay: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False  # values cannot change
    work: float = 1.0
    compiles: bool = False  # its process compiles the model, which takes half a minute or more

    @property
    def key(self) -> str:
        """Equal for equal changed texts, whatever they are called."""
        return digest(sorted(self.overlay.items()))


def digest(texts: Iterable[tuple[str, str]]) -> str:
    """A hash of paths and texts, in the order given."""
    found = hashlib.sha256()
    for path, text in texts:
        for part in (path, text):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]
