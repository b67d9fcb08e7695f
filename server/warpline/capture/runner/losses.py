"""The losses of the first steps: the tensors that ``backward()`` was called on, read at the end."""

import math

from .patches import Patches

MOST = 200


class Losses:
    """Keeps detached tensors: no value is read, and so nothing waits, before ``values()``."""

    def __init__(self):
        self.patches = Patches()
        self.kept = []
        self.backwards = 0
        self.not_finite_at = None  # known after ``values()``

    def install(self, torch):
        keep = self.kept.append

        def make(original):
            def backward(tensors, *arguments, **named):
                self.backwards += 1
                if isinstance(tensors, torch.Tensor) and tensors.numel() == 1 and len(self.kept) < MOST:
                    keep(tensors.detach())
                return original(tensors, *arguments, **named)

            return backward

        self.patches.replace(torch.autograd, "backward", make)

    def remove(self):
        self.patches.restore()

    def values(self):
        """The losses up to the first that is not finite, which JSON could not hold."""
        values = [float(tensor) for tensor in self.kept]
        self.not_finite_at = next((at for at, value in enumerate(values) if not math.isfinite(value)), None)
        return values[: self.not_finite_at]
