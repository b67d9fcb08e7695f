"""Run folder (or a trace made elsewhere) -> Trace: columns, linked; what happened, no opinion."""

from warpline.trace.columns import Trace
from warpline.trace.read import read

__all__ = ["Trace", "read"]
