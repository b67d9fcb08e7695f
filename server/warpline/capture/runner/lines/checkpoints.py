"""Python code inside backward: marks forward passes that checkpointing recomputes, and finds their threads.

torch itself does not mark them. Both kinds of checkpoint are covered. ``entering`` is called on the thread
that recomputes; with a GPU that is autograd's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..patches import Patches

if TYPE_CHECKING:
    from ..patches import Function

MARK = "warpline.recompute"


class Checkpoints:
    def __init__(self, entering: Callable[[], None]) -> None:
        self.patches = Patches()
        self.entering = entering

    def install(self) -> None:
        """Mark each recomputation of a checkpointed forward, in both of torch's variants."""
        from torch.autograd.profiler import record_function
        from torch.utils import checkpoint

        entering = self.entering

        def marked(function: Function) -> Function:
            def recompute(*arguments: Any, **named: Any) -> Any:
                entering()
                with record_function(MARK):
                    return function(*arguments, **named)

            return recompute

        def make_frame(original: Function) -> Function:
            def __init__(self: Any, recompute_fn: Function, *arguments: Any, **named: Any) -> None:
                original(self, marked(recompute_fn), *arguments, **named)

            return __init__

        def make_forward(original: Function) -> Function:
            def forward(ctx: Any, *arguments: Any) -> Any:
                result = original(ctx, *arguments)
                ctx.run_function = marked(ctx.run_function)
                return result

            return forward

        if hasattr(checkpoint, "_CheckpointFrame"):
            self.patches.replace(checkpoint._CheckpointFrame, "__init__", make_frame)
        self.patches.replace(checkpoint.CheckpointFunction, "forward", make_forward)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()


class EngineThreads:
    """Calls ``entering`` when autograd is about to run a ``backward`` of the user's.

    Autograd's threads are not Python's: a trace function has to be set from inside.
    """

    def __init__(self, entering: Callable[[], None]) -> None:
        self.patches = Patches()
        self.entering = entering

    def install(self) -> None:
        """Call ``entering`` where autograd runs a Python function's backward, maybe in a thread of its
        own."""
        from torch.autograd.function import BackwardCFunction

        entering = self.entering

        def make(original: Function) -> Function:
            def apply(node: Any, *arguments: Any) -> Any:
                entering()
                return original(node, *arguments)

            return apply

        for name in ("apply", "apply_boxed"):
            self.patches.replace(BackwardCFunction, name, make)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()
