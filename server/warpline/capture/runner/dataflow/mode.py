"""Records every operator of a step below autograd, with its inputs and outputs."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import sys
import weakref
from dataclasses import replace
from opcode import opname
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from ....wire.dataflow import (
    COMPILED,
    DIRECT,
    LIBRARY,
    MODULE,
    MOST_IN_LIST,
    MOST_OPERATORS,
    OPTIMIZER,
    TENSOR,
    WRITTEN,
    Dataflow,
    Frame,
    Masked,
    OperatorSite,
    Padding,
    Unscored,
    values_in,
)
from ..births.untrained import note_untrained
from ..modes import taken_off
from ..tracebacks import is_ours
from .gradients import Gradients
from .hidden import Hidden
from .masks import Masks
from .padding import LookedUp
from .unscored import Scored
from .values import ALIAS, Interned, Owner, Values, writes

if TYPE_CHECKING:
    from ..births.sites import Sites

_TORCH = torch.__path__[0]
_FUNCTION = torch.autograd.function.__file__
#: It is a function of C's from torch 2.15 on.
_APPLY_HAS_FRAME = hasattr(torch.autograd.Function.apply, "__code__")
_PLAIN = (bool, int, float)
_SLICE = "aten.slice.Tensor"
_LIFTED, _NUMBER = "aten.lift_fresh.default", "aten.scalar_tensor.default"
#: What ``x[…] = value`` runs.
_STORES = ("STORE_SUBSCR", "STORE_SLICE")
#: Of a deeper recursion the innermost ones are recorded. Chosen, not fitted.
MOST_FRAMES = 64
#: In what a compiled function is given, tensors are looked for so deep, and in so many values: a trainer may
#: hold its whole dataset. Chosen, not fitted.
DEEPEST, MOST_GIVEN = 4, 20_000
#: What torch's recurrent layers call, each with all of its input.
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


class Operators(TorchDispatchMode):  # type: ignore[misc]  # torch is not here where types are checked
    """Entered and left at step boundaries. It hands each call on as it is; a fault of ours ends the record
    and nothing else."""

    # Higher-order operators come here as well, and not to an error.
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import all of Dynamo for it."""
        return False

    def __init__(self, sites: Sites) -> None:
        super().__init__()
        self.user_files = sites.user_files
        self.names_of = sites.names
        self.missing = ""
        self.running = True
        self.calls = 0
        self.compiled = 0  # calls of compiled code
        self.owners: List[Owner] = []
        self.random: Set[int] = set()  # names of operators that draw numbers, or get data from elsewhere
        self.partly: Set[int] = set()  # operators with a list that is not recorded
        self._forward_values: Optional[int] = None  # values that there were when a backward pass began
        self.buffers: Tuple[int, ...] = ()
        self.values = Values(torch, self._alias)
        self.looked_up = LookedUp()
        self.padding: Tuple[Padding, ...] = ()
        self.hidden = Hidden(torch)
        self.scored = Scored(torch)
        self.unscored: Tuple[Unscored, ...] = ()
        self.masks = Masks(torch)
        self.masked: Tuple[Masked, ...] = ()
        self._embedding = torch.ops.aten.embedding.default
        self.names, self.sites = Interned(), Interned()
        self.name: List[int] = []
        self.site: List[int] = []
        self.arguments: List[Any] = []
        self.outputs: List[Tuple[int, ...]] = []
        self.frames, self.stacks = Interned(), Interned()
        self.stack: List[int] = []
        self.ungraphed: List[int] = []
        self._ways: Dict[str, str] = {}
        #: (code, instruction, way) -> site
        self._by_place: Dict[Tuple[CodeType, int], int] = {}  # (code, instruction) -> frame
        self._by_instruction: Dict[Tuple[CodeType, int, str], int] = {}

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        arguments: Tuple[Any, ...] = (),
        named: Optional[Dict[str, Any]] = None,
    ) -> Any:
        named = named or {}
        self.calls += 1
        before = self._before(arguments, named) if self.running else None
        result = function(*arguments, **named)
        if before is not None:
            try:
                self._note(function, before, result, sys._getframe(1))
                outside = any(isinstance(one, torch.UntypedStorage) for one in arguments)  # a worker's batch
                if outside or torch.Tag.nondeterministic_seeded in getattr(function, "tags", ()):
                    self.random.add(self.names[str(function)])
                if any(isinstance(one, (list, tuple)) and len(one) > MOST_IN_LIST for one in arguments):
                    self.partly.add(len(self.name) - 1)
                if result is None:
                    self.values.wrote(_tensors((arguments, tuple(named.values()))))
                if function is self._embedding:
                    self.looked_up.add(arguments, self.arguments[-1], self.site[-1])
                if function in self.hidden.readers:
                    self.hidden.add(function, arguments, named, before, self.site[-1], self.values.rows)
                self.scored.add(function, arguments, before, result)
                self.masks.add(function, arguments, named, len(self.name) - 1)
            except Exception as error:
                self._stop("an operator could not be read (%s)" % type(error).__name__)
        return result

    def called_compiled(self, given: List[Tuple[Any, Optional[int]]], results: List[Any], frame: Any) -> None:
        """Note a call of compiled code, made at ``frame``. ``given``: tensors, with the counts of writes to
        them before it."""
        self.compiled += 1
        if not self.running or torch._C._current_graph_task_id() != -1:
            return
        try:
            site = self._site(frame)
            read = [TENSOR + str(self.values.read(one)) for one, _ in given]
            self._own(frame)
            made = tuple(self.values.made(one, False) for one in results)
            self._add(COMPILED, site, [read], made, self.stack_at(frame))
            # What counts no writes may have been written to.
            for one in (one for one, before in given if before is None or writes(one) != before):
                was = TENSOR + str(self.values.read(one))
                self._add(WRITTEN, site, [was], (self.values.made(one, True),))
            self.random.update((self.names[COMPILED], self.names[WRITTEN]))
        except Exception as error:
            self._stop("a compiled call could not be read (%s)" % type(error).__name__)

    def _own(self, frame: Any) -> None:
        """Note whose compiled code is called: of a module's method, the module's parameters."""
        module = getattr(frame.f_locals.get("fn"), "__self__", None)
        if isinstance(module, torch.nn.Module):
            own = [(weakref.ref(one), int(one._version)) for one in module.parameters()]
            self.owners.append(Owner(len(self.name), own))

    def read_in_turn(self, series: Any, batch_first: bool, frame: Any) -> None:
        """Note the input of a recurrent layer, (rows, columns, features), without ``batch_first`` (columns,
        rows, features)."""
        if self.running and torch._C._current_graph_task_id() == -1:
            rows = series if batch_first or series.dim() != 3 else series.transpose(0, 1)
            self.looked_up.add_series(rows, self.values.read(series), self._site(frame))

    def _before(self, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Optional[List[Any]]:
        """The arguments as they are before the call; None in the backward pass."""
        try:
            if torch._C._current_graph_task_id() != -1:
                if self._forward_values is None:
                    self._forward_values = len(self.values.shape)
                return None
            if len(self.name) >= MOST_OPERATORS:
                self._stop("it has more than %d operators" % MOST_OPERATORS)
                return None
            given = [self._argument(one) for one in arguments]
            if named:
                given.append({name: self._argument(one) for name, one in named.items()})
            return given
        except Exception as error:
            self._stop("a tensor could not be read (%s)" % type(error).__name__)
            return None

    @property
    def forward_values(self) -> int:
        """How many values the forward pass has. Later ones are gradients, whose making is not recorded."""
        return len(self.values.shape) if self._forward_values is None else self._forward_values

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return TENSOR + str(self.values.read(value))
        if value is None or isinstance(value, _PLAIN):
            # JSON has no numbers that are not finite.
            return value if not isinstance(value, float) or math.isfinite(value) else str(value)
        if isinstance(value, (torch.dtype, torch.memory_format)):
            return str(value).replace("torch.", "")
        if isinstance(value, (list, tuple)):
            if len(value) <= MOST_IN_LIST:
                return [self._argument(one) for one in value]
            self.values.listed(one for one in value if isinstance(one, torch.Tensor))
        return None

    def _note(self, function: Any, given: List[Any], result: Any, frame: Any) -> None:
        made = result if isinstance(result, (list, tuple)) else (result,)
        tensors = [one for one in made if isinstance(one, torch.Tensor)]
        name = str(function)
        if name.startswith("profiler."):
            return
        schema = getattr(function, "_schema", None)
        in_place = bool(schema is not None and schema.is_mutable)
        outputs = tuple(self.values.made(one, in_place) for one in tensors[:MOST_IN_LIST])
        if name == _SLICE and [TENSOR + str(one) for one in outputs] == given[:1]:
            return  # the whole tensor: torch 2.4 slices it for each `:` of an index
        if name == _LIFTED and _is_stored(tensors[0], frame):
            name, given = _NUMBER, [self._argument(tensors[0].item())]
        if in_place:
            read = tuple(values_in(given))
            for output in outputs:
                self.values.written_by(output, read)
        if not torch.is_grad_enabled() and not _is_own_function(frame):
            self.ungraphed.append(len(self.name))
        self._add(name, self._site(frame), given, outputs, self.stack_at(frame))

    def _add(self, name: str, site: int, given: List[Any], outputs: Tuple[int, ...], stack: int = -1) -> None:
        self.name.append(self.names[name])
        self.stack.append(stack)
        self.site.append(site)
        self.arguments.append(given)
        self.outputs.append(outputs)

    def _alias(self, new: int, old: int) -> None:
        self._add(ALIAS, -1, [TENSOR + str(old)], (new,))

    def _site(self, frame: Any) -> int:
        """The instruction of the user's that led to a call made at ``frame``."""
        via = DIRECT
        while frame is not None:
            file = frame.f_code.co_filename
            if self.user_files[file] is not None:
                key = (frame.f_code, frame.f_lasti, via)
                known = self._by_instruction.get(key)
                if known is None:
                    path = self.user_files[file] or ""
                    function = self.names_of.of(frame.f_code, path)
                    # Two instructions of one line are two sites.
                    site = (path, frame.f_lineno, function, via, frame.f_code, frame.f_lasti)
                    known = self._by_instruction[key] = self.sites[site]
                return known
            via = max(via, self._way(file), key=_FURTHER.index)
            frame = frame.f_back
        return -1

    def stack_at(self, frame: Any) -> int:
        """The user's instructions that run at ``frame``, as one of ``stacks``; -1 if there are none."""
        instructions = []
        while frame is not None:
            if self.user_files[frame.f_code.co_filename] is not None:
                instructions.append((frame.f_code, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        stack = -1
        for code, at, line in reversed(instructions[:MOST_FRAMES]):
            stack = self.stacks[(stack, self._frame(code, at, line))]
        return stack

    def _frame(self, code: CodeType, at: int, line: int) -> int:
        known = self._by_place.get((code, at))
        if known is None:
            path = self.user_files[code.co_filename] or ""
            span = _span(code, at, line)
            key = (path, line, self.names_of.of(code, path), span, code, at)
            known = self._by_place[(code, at)] = self.frames[key]
        return known

    def _way(self, file: str) -> str:
        way = self._ways.get(file)
        if way is None:
            way = DIRECT if _is_below(file) else LIBRARY
            inside = file[len(_TORCH) :].replace("\\", "/")
            if way == DIRECT and inside.startswith("/nn/modules/"):
                way = MODULE
            elif way == DIRECT and inside.startswith("/optim/"):
                way = OPTIMIZER
            self._ways[file] = way
        return way

    def _stop(self, why: str) -> None:
        self.running = False
        self.missing = self.missing or why

    def found(self) -> Dataflow:
        """The recorded step. ``missing`` says why it is empty, where it is."""
        missing = self.missing
        if not missing and not self.name:
            missing = "the step's operators ran on other threads, or in a graph"
        around = bool(self.compiled and not missing)
        return Dataflow(
            missing="code is compiled: its operators are not recorded" if around else missing,
            around=around,
            calls=self.calls,
            names=tuple(self.names),
            sites=tuple(OperatorSite(*site[:4]) for site in self.sites),
            shapes=tuple(self.values.shapes),
            dtypes=tuple(self.values.dtypes),
            name=tuple(self.name),
            site=tuple(self.site),
            arguments=tuple(self.arguments),
            outputs=tuple(self.outputs),
            shape=tuple(self.values.shape),
            dtype=tuple(self.values.dtype),
            parameters=tuple(self.values.parameters),
            frames=tuple(Frame(*frame[:4]) for frame in self.frames),
            stacks=tuple(self.stacks),
            stack=tuple(self.stack),
            ungraphed=tuple(self.ungraphed),
            leaves=tuple(sorted(self.values.leaves)),
            buffers=self.buffers,
            padding=self.padding,
            unscored=self.unscored,
            masked=self.masked,
        )


def _is_own_function(frame: Any) -> bool:
    """Whether it is the forward of a ``torch.autograd.Function``: autograd is off in it, and yet the graph
    has what it computes, as one node."""
    forwards = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "apply" and code.co_filename == _FUNCTION:
            return True
        if code.co_name == "forward" and not _APPLY_HAS_FRAME:
            forwards = _forwards() if forwards is None else forwards
            if code in forwards:
                return True
        frame = frame.f_back
    return False


def _is_stored(tensor: Any, frame: Any) -> bool:
    """Whether it was made of the number in ``x[…] = 0.5``: on a CPU no operator makes it, as one does on a
    GPU."""
    while frame is not None and _is_below(frame.f_code.co_filename):
        frame = frame.f_back
    one = frame is not None and type(tensor) is torch.Tensor and not tensor.dim()
    return one and opname[frame.f_code.co_code[frame.f_lasti]] in _STORES


def _is_below(file: str) -> bool:
    """Whether a file is torch's, ours, or none (``<frozen …>``)."""
    return file.startswith((_TORCH, "<")) or is_ours(file)


def _forwards() -> Set[Any]:
    """The code of the forward of each ``torch.autograd.Function`` that there is."""
    found, left = set(), [torch.autograd.Function]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        found.add(getattr(inspect.unwrap(one.forward), "__code__", None))
    return found


def _span(code: CodeType, at: int, line: int) -> Tuple[int, ...]:
    """Last line, first and last column of an instruction; empty where Python does not tell."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return ()
    first, *span = next(itertools.islice(positions(), at // 2, None), (None,))
    return tuple(span) if first == line and None not in span else ()


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def tensors_in(value: Any) -> List[Any]:
    """The tensors in what a compiled function is given or returns: in lists, dicts and objects, but not a
    module's own. Raises ``OverflowError`` where they hold more than ``MOST_GIVEN`` values."""
    found, seen, left = [], set(), [(value, DEEPEST)]
    while left:
        one, depth = left.pop()
        if isinstance(one, torch.Tensor):
            found.append(one)
            continue
        if not depth or id(one) in seen or isinstance(one, (torch.nn.Module, type)):
            continue
        seen.add(id(one))
        if isinstance(one, (list, tuple)):
            parts: Any = one
        elif isinstance(one, dict):
            parts = one.values()
        else:
            parts = getattr(one, "__dict__", {}).values()
        if len(seen) + len(left) + len(parts) > MOST_GIVEN:
            raise OverflowError
        left += [(part, depth - 1) for part in parts][::-1]
    return found


def _local(frame: Any, *names: str) -> List[Any]:
    found = frame.f_locals
    return [found[name] for name in names if name in found]


_FURTHER = (DIRECT, MODULE, OPTIMIZER, LIBRARY)


class Recording:
    """One step under ``Operators``."""

    def __init__(
        self,
        sites: Sites,
        optimizers: Callable[[], Optional[List[Any]]] = list,
        modules: Callable[[], List[Any]] = list,
        gradients: Optional[Gradients] = None,
        compiles: bool = False,
    ) -> None:
        """``optimizers`` gives those of the script, None where not all are known; ``modules`` its modules.
        ``gradients``: of the step before, which are still watched. ``compiles``: the script compiles code;
        then they are not watched."""
        self.mode, self._sites = Operators(sites), sites
        self.gradients = gradients or Gradients(torch, self.mode)
        self._watches = gradients is None and not compiles
        self._compiles = compiles
        self._optimizers, self._modules = optimizers, modules
        self._call: Optional[Callable[..., Any]] = None
        self._ctc_loss: Optional[Callable[..., Any]] = None
        self._given: List[Tuple[Any, Optional[int]]] = []  # to the compiled code that runs
        self._rates: Set[float] = set()

    def start(self) -> None:
        """Record each operator from here on."""
        self._note_rates()
        if self._watches:
            with contextlib.suppress(Exception):  # another version of torch
                self.gradients.start()
        self._enter()

    def pause(self, frame: Any) -> None:
        """Record nothing while code runs that would be compiled again for that: the call of ``frame``."""
        try:
            self._given = [(one, writes(one)) for one in tensors_in(_local(frame, "args", "kwargs"))]
        except Exception as error:
            self.mode._stop("a compiled call could not be read (%s)" % type(error).__name__)
        self._leave()

    def resume(self, frame: Any) -> None:
        """Go on after that, with what it returned."""
        given, self._given, results = self._given, [], []
        try:
            results = tensors_in(_local(frame, "result"))
        except Exception as error:
            self.mode._stop("a compiled call could not be read (%s)" % type(error).__name__)
        self._enter()
        self.mode.called_compiled(given, results, frame)

    def _enter(self) -> None:
        from torch._ops import HigherOrderOperator

        self._call = HigherOrderOperator.__call__
        HigherOrderOperator.__call__ = _without(self.mode, self._call)
        self._ctc_loss = torch.ctc_loss
        torch.ctc_loss = _as_one(self.mode, self._ctc_loss, torch.ops.aten.ctc_loss.Tensor)
        for name in _RECURRENT:
            setattr(torch._VF, name, _noted(self.mode, getattr(torch._VF, name)))
        # Not ``__enter__``: it sets flags of Dynamo's that only its own ``__exit__`` takes back.
        _push_mode(self.mode)

    def _leave(self) -> None:
        from torch._ops import HigherOrderOperator

        leave(self.mode)
        if self._call is not None:
            HigherOrderOperator.__call__ = self._call
            torch.ctc_loss = self._ctc_loss
            self._call = self._ctc_loss = None
            for name in _RECURRENT:
                delattr(torch._VF, name)

    def stop(self, watching: bool = False) -> Dataflow:
        """End the recording and return it, with what can only be seen at its end, such as padding. A part
        that raises is left out. ``watching``: what becomes of its gradients is still watched; the caller ends
        that by ``with_gradients``."""
        self.mode.running = False
        self._leave()
        self._note_rates()
        with contextlib.suppress(Exception):  # a module that was not set up
            buffers = [one for module in self._modules() for one in module._buffers.values()]
            self.mode.buffers = self.mode.values.unchanged(one for one in buffers if one is not None)
        with contextlib.suppress(Exception):  # indices on a device that has run out of memory, say
            self.mode.padding = self.mode.looked_up.padding() + self.mode.hidden.padding()
        with contextlib.suppress(Exception):  # the same for targets
            self.mode.unscored = self.mode.scored.unscored()
        with contextlib.suppress(Exception):
            self.mode.masked = self.mode.masks.masked()
        flow = replace(self.mode.found(), rates=tuple(sorted(self._rates)))
        if flow.around:
            with contextlib.suppress(Exception):  # an unusual optimizer: left out
                found = self.mode.values.unheld_unwatched(self._optimizers() or [], self.mode.owners)
                flow = replace(flow, unheld=found[0], unheld_calls=found[1])
        return flow if watching or not self._watches else self.with_gradients(flow)

    def _note_rates(self) -> None:
        """Note the learning rates of all groups, where they are no tensors, whose reading may wait."""
        with contextlib.suppress(Exception):  # an unusual optimizer
            groups = [group for each in self._optimizers() or [] for group in each.param_groups]
            self._rates.update(group["lr"] for group in groups if isinstance(group.get("lr"), float))

    def with_gradients(self, flow: Dataflow) -> Dataflow:
        """End the watch over this step's gradients; ``flow`` with what became of them. Compiled code may read
        them, and update parameters, unseen."""
        self.gradients.stop()
        if self.mode.compiled or self._compiles:
            return flow
        with contextlib.suppress(Exception):  # an unusual optimizer: left out
            optimizers = self._optimizers()
            unheld = self.mode.values.unheld(optimizers, self.gradients.is_read)
            flow = replace(flow, unheld=unheld)
            if unheld:
                free, others = self.mode.values.divided(unheld)
                groups = [group for each in optimizers or () for group in each.param_groups]
                others += [one for group in groups for one in group["params"]]
                note_untrained(self._sites, free, others)
        with contextlib.suppress(Exception):  # a module that was not set up
            passes = self.gradients.found(self._modules())
            frames = tuple(Frame(*frame[:4]) for frame in self.mode.frames)  # the next step's calls, too
            flow = replace(flow, passes=passes, frames=frames, stacks=tuple(self.mode.stacks))
        return flow


def _without(mode: Operators, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` with ``mode`` taken off: older versions of torch raise where a mode has no rule for a
    higher-order operator."""

    def __call__(self: Any, *arguments: Any, **named: Any) -> Any:
        if not leave(mode):
            return call(self, *arguments, **named)
        mode._stop("it has higher-order operators")
        return call(self, *arguments, **named)

    return __call__


def _as_one(mode: Operators, call: Callable[..., Any], operator: Any) -> Callable[..., Any]:
    """``call`` with ``mode`` taken off, recorded as ``operator`` and not as what that is made of.

    Under a mode ``torch.ctc_loss`` computes with the lengths as they are (``isTensorSubclassLike`` in torch's
    LossCTC.cpp), and fails where they are on the CPU and the rest is not. Without one it reads them first.
    Below a mode of the script's own ``mode`` stays: the script would then take off ours instead of its own.
    """

    def ctc_loss(*arguments: Any, **named: Any) -> Any:
        if [*_get_current_dispatch_mode_stack()][-1:] != [mode]:  # also on another thread
            return call(*arguments, **named)
        _pop_mode()
        given = mode._before(arguments, named) if mode.running else None
        try:
            result = call(*arguments, **named)
        finally:
            _push_mode(mode)
        if given is not None:
            try:
                mode._note(operator, given, result, sys._getframe(1))
            except Exception as error:
                mode._stop("an operator could not be read (%s)" % type(error).__name__)
        return result

    return ctc_loss


def _noted(mode: Operators, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` of a recurrent layer, whose input ``mode`` is told: below it there are only its products. A
    packed input has no padding, and two dimensions."""

    def recurrent(series: Any, *arguments: Any) -> Any:
        try:
            mode.read_in_turn(series, bool(arguments[-1]), sys._getframe(1))
        except Exception as error:
            mode._stop("an operator could not be read (%s)" % type(error).__name__)
        return call(series, *arguments)

    return recurrent


def leave(mode: Any) -> bool:
    """Take ``mode`` off this thread's stack. False if it is not there."""
    return taken_off(mode, _get_current_dispatch_mode_stack(), _pop_mode, _push_mode)
