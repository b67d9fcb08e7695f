"""Collects what happens in a step as a set of signals. Steps with the same set are of one class.

Between two training steps a script may evaluate, write a sample or act in an environment. Such a step differs
from the others, and its extra work must not be spread over their lines. Signals are also collected while
steps are timed, so they are few and take well under a microsecond each:

- a backward pass;
- the data set that a batch came from;
- ``Module.eval()``;
- a context of ``no_grad``, ``inference_mode`` or ``set_grad_enabled``, by the place in the code that enters
  it. Those that torch enters itself do not count.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from ..patches import Patches
from ..tracebacks import is_ours
from .datasets import Datasets

if TYPE_CHECKING:
    from ..patches import Function

BACKWARD, EVAL, GRAD_MODE, BATCH = "backward", "eval", "grad mode", "batch"


def nothing(frame: FrameType) -> None:
    """A call without effect, where ``on_backward`` has no listener."""
    pass


def none() -> None:
    """The same for ``on_inference_end``."""
    pass


class Signals:
    """Must be installed before all others that replace the same functions, and removed after them."""

    def __init__(self) -> None:
        self.patches = Patches()
        self.seen: set[tuple[Any, ...]] = set()
        self.datasets = Datasets()
        self.on_backward: Callable[[FrameType], None] = nothing  # called with the frame that called backward
        self.on_inference_end: Callable[[], None] = none  # called after each inference mode
        self.inside = False  # a backward pass is running
        self.filled = False  # a gradient for training was computed: in ``.grad``, or of a parameter
        self.evaluated = False  # an evaluation was signalled
        self.thread: int | None = None  # the thread of the steps, once known; others do not count
        self.overlap = False  # requests that run at once: what one does may be signalled in another's step
        self.parameter: Any = ()
        self.torch_folder = ""
        self.contexts = ""  # the file of torch's context managers

    def install(self, torch: ModuleType) -> None:
        """Watch backward passes, ``eval()``, loaders and the gradient modes."""
        from torch.autograd import grad_mode
        from torch.nn import Module, Parameter
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self.parameter = Parameter
        self.torch_folder = os.path.join(os.path.dirname(torch.__file__ or ""), "")
        self.contexts = os.path.join(self.torch_folder, "utils", "_contextlib.py")
        self.patches.replace(torch.autograd, "grad", lambda original: self._backward(original, False))
        for owner in (torch.autograd, torch.Tensor):
            self.patches.replace(owner, "backward", lambda original: self._backward(original, True))
        self.patches.replace(Module, "eval", self._eval)
        self.patches.replace(_BaseDataLoaderIter, "__next__", self._next)
        for context in (grad_mode.no_grad, grad_mode.inference_mode):
            self.patches.replace(context, "__enter__", self._enter)
        self.patches.replace(grad_mode.set_grad_enabled, "__init__", self._set)
        self.patches.replace(grad_mode.inference_mode, "__exit__", self._exit)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def take(self) -> frozenset[tuple[Any, ...]]:
        """The class of the step that ends now."""
        found = frozenset() if self.overlap else frozenset(self.seen)
        self.seen.clear()
        return found

    def _backward(self, original: Function, fills: bool) -> Function:
        """Wrap a backward function so that it signals once, after the outermost call. Calls nest:
        ``Tensor.backward`` calls ``torch.autograd.backward``, and under a torch function mode (the survey is
        one) each calls itself again."""
        seen, signal = self.seen, (BACKWARD,)

        def backward(*arguments: Any, **named: Any) -> Any:
            if self.inside or not self._counts():
                return original(*arguments, **named)
            self.inside = True
            try:
                result = original(*arguments, **named)
            finally:
                self.inside = False
            seen.add(signal)
            self.filled |= fills or self._of_parameters(*arguments, **named)
            self.on_backward(sys._getframe(1))
            return result

        return backward

    def _of_parameters(self, outputs: Any = None, inputs: Any = (), *_: Any, **__: Any) -> bool:
        """Whether ``torch.autograd.grad`` was asked for the gradient of a module's parameter."""
        several = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        return any(isinstance(one, self.parameter) for one in several)

    def _eval(self, original: Function) -> Function:
        seen, signal = self.seen, (EVAL,)

        def eval(module: Any) -> Any:
            if self._counts():
                seen.add(signal)
                self.evaluated = True
            return original(module)

        return eval

    def _next(self, original: Function) -> Function:
        seen, number = self.seen, self.datasets.of

        def __next__(iterator: Any) -> Any:
            if self._counts():
                seen.add((BATCH, number(iterator)))
            return original(iterator)

        return __next__

    def _enter(self, original: Function) -> Function:
        def __enter__(context: Any) -> Any:
            self._grad_mode(sys._getframe(1), False)
            return original(context)

        return __enter__

    def _exit(self, original: Function) -> Function:
        """A ``with`` looks this up at its beginning: it has to be there before what needs it."""

        def __exit__(context: Any, *error: Any) -> Any:
            result = original(context, *error)
            self.on_inference_end()
            return result

        return __exit__

    def _set(self, original: Function) -> Function:
        def __init__(context: Any, mode: bool) -> None:
            frame = sys._getframe(1)
            if frame.f_code.co_name == "__init__" and is_ours(frame.f_code.co_filename):
                frame = frame.f_back or frame  # births.contexts watches it too
            self._grad_mode(frame, mode)
            original(context, mode)

        return __init__

    def _counts(self) -> bool:
        return self.thread is None or get_ident() == self.thread

    def _grad_mode(self, frame: FrameType, mode: bool) -> None:
        if not self._counts():
            return
        file = frame.f_code.co_filename
        if file == self.contexts:  # a function decorated with it
            code = getattr(frame.f_locals.get("func"), "__code__", None)
            if code is not None and not self._passed_over(code.co_filename):
                self._place_of_mode(id(code), 0, mode)
        elif not self._passed_over(file):
            self._place_of_mode(id(frame.f_code), frame.f_lineno, mode)

    def _passed_over(self, file: str) -> bool:
        return file.startswith(self.torch_folder) or is_ours(file)

    def _place_of_mode(self, code: int, line: int, mode: bool) -> None:
        self.seen.add((GRAD_MODE, code, line, mode))
        self.evaluated |= not mode

    def place(self, frame: FrameType | None) -> int:
        """A number for the innermost place outside torch at or around ``frame``."""
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith(self.torch_folder) and not is_ours(file):
                return hash((id(frame.f_code), frame.f_lineno))
            frame = frame.f_back
        return 0


def evaluates(signals: frozenset[tuple[Any, ...]]) -> bool:
    """Whether what is signalled looks like an evaluation."""
    return any(signal[0] == EVAL or (signal[0] == GRAD_MODE and not signal[3]) for signal in signals)
