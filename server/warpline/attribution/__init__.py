"""Trace -> Profile: which line caused it (lines, backward, compiled code, idle time, costs)."""

from warpline.attribution.attribute import attribute
from warpline.attribution.scene import Located, locate

__all__ = ["Located", "attribute", "locate"]
