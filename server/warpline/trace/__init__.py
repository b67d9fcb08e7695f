"""Run folder (or a trace of another tool) -> Trace: linked columns of what happened, without attribution."""

from warpline.trace.ahead import Ahead
from warpline.trace.columns import Trace
from warpline.trace.read import read

__all__ = ["Ahead", "Trace", "read"]
