"""Marks the forward that checkpointing runs again inside backward, with ``record_function``.

torch has no mark of its own there. Both kinds of checkpoint are covered; ``entering`` is called on
the thread that recomputes, which is autograd's own where a GPU is used.
"""

from .patches import Patches

MARK = "warpline.recompute"


class Checkpoints:
    def __init__(self, entering):
        self.patches = Patches()
        self.entering = entering

    def install(self):
        import torch.utils.checkpoint as checkpoint
        from torch.autograd.profiler import record_function

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
