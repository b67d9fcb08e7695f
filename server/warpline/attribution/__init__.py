"""Trace -> Profile: attributes kernels, host time and idle time to source lines."""

from warpline.attribution.attribute import attribute
from warpline.attribution.scene import Located, locate

__all__ = ["Located", "attribute", "locate"]
