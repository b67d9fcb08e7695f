"""What becomes of the gradients that the recorded steps leave in ``.grad``: read, or cleared unread.

Only Python is watched. A reducer of another language (``DistributedDataParallel``) reads unseen: rules do not
use this where the script has one.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ....wire.dataflow import Backward

if TYPE_CHECKING:
    from .mode import Operators

#: The function in which ``backward()`` and ``grad()`` enter torch's engine, since torch 2.2.
_ENGINE = "_engine_run_backward"
State = Optional[Tuple[Any, int]]  # of a gradient: the tensor and its version


class Asking(NamedTuple):
    """A parameter that asks for gradients, held weakly, and the numbers of its values."""

    held: "weakref.ref[Any]"
    values: List[int]


class _Pass:
    def __init__(self, operator: int, stack: int, roots: Tuple[int, ...], retained: bool) -> None:
        self.operator, self.stack, self.roots, self.retained = operator, stack, roots, retained
        self.inputs: Tuple[int, ...] = ()
        self.read: Set[int] = set()
        self.cleared: Set[int] = set()
        self.left: Set[int] = set()  # ids of parameters; nothing is known of these gradients yet


class Gradients:
    """Watches from ``start`` to ``stop``, which may be later than the end of the recorded step: many
    gradients are cleared in the next one."""

    def __init__(self, torch: Any, mode: Operators) -> None:
        self.torch, self.mode = torch, mode
        self.passes: List[_Pass] = []
        self.read: Set[int] = set()  # ids of parameters whose gradients something read
        self.unseen = False  # something else may have seen gradients pass by
        self.failed = False  # not all passes were noted
        self._undo: List[Callable[[], None]] = []
        self._base: Any = None
        self._path = torch.__path__[0]

    def start(self) -> None:
        """Watch. Without effect where this torch has no such function."""
        torch = self.torch
        run = getattr(torch.autograd, _ENGINE, None)
        if run is None or "grad" in vars(torch.nn.Parameter):
            return
        self._base = torch.Tensor.grad
        torch.nn.Parameter.grad = property(self._get, self._set, self._delete)
        self._undo.append(lambda: delattr(torch.nn.Parameter, "grad"))
        self._replace(torch.autograd, _ENGINE, self._running(run))
        for name in ("register_hook", "retain_grad"):
            self._replace(torch.Tensor, name, self._seeing(getattr(torch.Tensor, name)))

    def _replace(self, owner: Any, name: str, made: Any) -> None:
        original = vars(owner).get(name)

        def undo() -> None:
            if vars(owner).get(name) is made:
                delattr(owner, name) if original is None else setattr(owner, name, original)

        setattr(owner, name, made)
        self._undo.append(undo)

    def stop(self) -> None:
        """Put everything back; it may be called again."""
        while self._undo:
            self._undo.pop()()

    def found(self, modules: Iterable[Any] = ()) -> Tuple[Backward, ...]:
        """The passes. None where something may have looked at gradients in another way, such as a hook of one
        of the ``modules``."""
        if self.unseen or self.failed or any(map(is_hooked, modules)):
            return ()
        numbers: Dict[int, List[int]] = {}
        for asking in self.mode.values.asking.values():
            parameter = asking.held()
            if parameter is not None:
                numbers[id(parameter)] = asking.values
                if is_hooked(parameter):
                    self._settle_as_read(id(parameter))

        def values(of: Set[int]) -> Tuple[int, ...]:
            return tuple(sorted(number for one in of for number in numbers.get(one, ())))

        return tuple(
            Backward(
                operator=one.operator,
                stack=one.stack,
                roots=one.roots,
                inputs=one.inputs,
                retained=one.retained,
                read=values(one.read),
                cleared=values(one.cleared),
                left=values(one.left),
            )
            for one in self.passes
        )

    def is_read(self, parameter: Any) -> bool:
        """Whether the gradient of ``parameter`` was read, or may have been."""
        return self.unseen or id(parameter) in self.read or is_hooked(parameter)

    def _get(self, parameter: Any) -> Any:
        if not self._is_clearing(sys._getframe(1)):
            self.read.add(id(parameter))
            self._settle(parameter, "read")
        else:
            self._settle(parameter, "cleared")
        return self._base.__get__(parameter)

    def _set(self, parameter: Any, value: Any) -> None:
        self._settle(parameter, "cleared")
        self._base.__set__(parameter, value)

    def _delete(self, parameter: Any) -> None:
        self._settle(parameter, "cleared")
        self._base.__delete__(parameter)

    def _is_clearing(self, frame: Any) -> bool:
        """Whether it is ``zero_grad`` of an optimizer or a module, which reads a gradient to clear it."""
        code = frame.f_code
        return bool(code.co_name == "zero_grad" and code.co_filename.startswith(self._path))

    def _settle(self, parameter: Any, fate: str) -> None:
        for one in self.passes:
            if id(parameter) in one.left:
                one.left.discard(id(parameter))
                getattr(one, fate).add(id(parameter))

    def _settle_as_read(self, key: int) -> None:
        for one in self.passes:
            if key in one.cleared or key in one.left:
                one.cleared.discard(key)
                one.left.discard(key)
                one.read.add(key)

    def _running(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_backward(roots: Any, *given: Any, **named: Any) -> Any:
            if self.torch._C._current_graph_task_id() != -1:
                return run(roots, *given, **named)
            before = self._states()
            made: Optional[_Pass] = None
            try:
                made = self._begin(roots, given, sys._getframe(1))
                self.passes.append(made)
            except Exception:  # another version of torch, or a tensor without storage
                self.failed = True
            result = run(roots, *given, **named)
            if made is not None and named.get("accumulate_grad", True):
                after = self._states()
                made.left = {key for key, state in after.items() if not _is_same(state, before.get(key))}
            return result

        return run_backward

    def _begin(self, roots: Any, given: Tuple[Any, ...], frame: Any) -> _Pass:
        mode = self.mode
        _, retain, create, inputs = given[:4]
        if not mode.running:  # a later step: its tensors have no numbers
            return _Pass(-1, mode.stack_at(frame), (), bool(retain or create))
        made = _Pass(len(mode.name), mode.stack_at(frame), self._numbers(roots), bool(retain or create))
        made.inputs = self._numbers(inputs)
        return made

    def _numbers(self, tensors: Any) -> Tuple[int, ...]:
        listed = tensors if isinstance(tensors, (tuple, list)) else ()
        return tuple(self.mode.values.read(one) for one in listed if isinstance(one, self.torch.Tensor))

    def _states(self) -> Dict[int, State]:
        """The gradient of each parameter now, by the parameter's id."""
        found: Dict[int, State] = {}
        for asking in self.mode.values.asking.values():
            parameter = asking.held()
            if parameter is not None:
                gradient = self._base.__get__(parameter)
                found[id(parameter)] = None if gradient is None else (gradient, gradient._version)
        return found

    def _seeing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def seen(*given: Any, **named: Any) -> Any:
            self.unseen = True
            return call(*given, **named)

        return seen


def _is_same(one: State, other: State) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] is other[0] and one[1] == other[1]


def is_hooked(thing: Any) -> bool:
    """Whether a module, or a parameter, has hooks that are given gradients."""
    names = ("_backward_hooks", "_backward_pre_hooks", "_post_accumulate_grad_hooks")
    return any(bool(getattr(thing, name, None)) for name in names)
