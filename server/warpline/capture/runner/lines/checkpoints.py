"""What runs inside backward: marks for the forward that checkpointing runs again, and new threads.

torch has no mark of its own there. Both kinds of checkpoint are covered; ``entering`` is called on
the thread that recomputes, which is autograd's own where a GPU is used.
"""

from ..patches import Patches

MARK = "warpline.recompute"


class Checkpoints:
    def __init__(self, entering):
        self.patches = Patches()
        self.entering = entering

    def install(self):
        from torch.autograd.profiler import record_function
        from torch.utils import checkpoint

        entering = self.entering

        def marked(function):
            def recompute(*arguments, **named):
                entering()
                with record_function(MARK):
                    return function(*arguments, **named)

            return recompute

        def make_frame(original):
            def __init__(self, recompute_fn, *arguments, **named):
                original(self, marked(recompute_fn), *arguments, **named)

            return __init__

        def make_forward(original):
            def forward(ctx, *arguments):
                result = original(ctx, *arguments)
                ctx.run_function = marked(ctx.run_function)
                return result

            return forward

        if hasattr(checkpoint, "_CheckpointFrame"):
            self.patches.replace(checkpoint._CheckpointFrame, "__init__", make_frame)
        self.patches.replace(checkpoint.CheckpointFunction, "forward", make_forward)

    def remove(self):
        self.patches.restore()


class EngineThreads:
    """Calls ``entering`` when autograd is about to run a ``backward`` of the user's.

    Autograd's threads are not Python's: a trace function has to be set from inside.
    """

    def __init__(self, entering):
        self.patches = Patches()
        self.entering = entering

    def install(self):
        from torch.autograd.function import BackwardCFunction

        entering = self.entering

        def make(original):
            def apply(node, *arguments):
                entering()
                return original(node, *arguments)

            return apply

        for name in ("apply", "apply_boxed"):
            self.patches.replace(BackwardCFunction, name, make)

    def remove(self):
        self.patches.restore()
