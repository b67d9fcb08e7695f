"""Seeds the random number generators, so that compared runs use the same numbers."""

from __future__ import annotations

from types import ModuleType

from . import imports


def plant(torch: ModuleType, seed: int) -> None:
    """Seed torch and random, and numpy if it is imported."""
    import random

    random.seed(seed)
    torch.manual_seed(seed)
    imports.when_imported("numpy", lambda numpy: numpy.random.seed(seed))
