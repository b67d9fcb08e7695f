"""torchvision: its models. A script has a loop of its own around them, which the rules read."""

from __future__ import annotations

from . import Construction

MODELS = (r"torchvision\.models\..+",)
CONSTRUCTIONS: tuple[Construction, ...] = ()
