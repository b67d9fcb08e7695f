"""Trace -> Profile: which line caused it (lines, backward, compiled code, idle time, costs)."""

from warpline.attribution.attribute import attribute

__all__ = ["attribute"]
