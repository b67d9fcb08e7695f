"""A candidate: fixes applied to the sources in memory, with a key that identifies them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Texts = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A changed script. ``overlay``: path -> text of every file that differs from the one on disk.

    ``base``: the same for the plain script (unsaved texts), which ``overlay`` contains as well. ``fixes``:
    ids of the findings that it fixes. ``work``: samples per step, relative to the plain script (2.0 for a
    batch twice as large); step times are compared per sample. ``joined``: backward passes of the plain script
    that one of the changed script's replaces, of batches whose gradients are added up.
    """

    fixes: tuple[str, ...]
    title: str
    overlay: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False  # values cannot change
    work: float = 1.0
    joined: int = 1
    compiles: bool = False  # its process compiles the model, which may take half a minute or more

    @property
    def key(self) -> str:
        """An identifier that depends only on the changed texts, not on the title."""
        return digest(sorted(self.overlay.items()))


def digest(texts: Iterable[tuple[str, str]]) -> str:
    """A hash of paths and texts, in the order given."""
    found = hashlib.sha256()
    for path, text in texts:
        for part in (path, text):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]
