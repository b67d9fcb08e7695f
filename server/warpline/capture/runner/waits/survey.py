"""One step looked at closely, outside timing and capture: copies, syncs, tensors made on the host."""

from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from ..births.sites import Sites
    from ..lines.userfiles import Place
    from ..patches import Function

FACTORIES = frozenset({
    "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "linspace", "logspace", "eye",
    "tensor", "as_tensor", "from_numpy", "randperm", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "normal", "bernoulli", "tril_indices", "triu_indices",
})  # fmt: skip
SYNCS = {
    "item": "item", "tolist": "tolist", "numpy": "numpy", "__array__": "numpy", "cpu": "cpu",
    "__bool__": "bool", "__int__": "item", "__float__": "item", "__index__": "item",
    "__repr__": "print", "__format__": "print", "nonzero": "nonzero", "argwhere": "nonzero",
    "masked_select": "masked_select", "unique": "unique", "equal": "equal", "allclose": "allclose",
}  # fmt: skip


class Survey(TorchFunctionMode):  # type: ignore[misc]  # torch is not here where types are checked
    """Entered and left at step boundaries. ``sites`` and ``flags`` are what it saw."""

    def __init__(self, torch: ModuleType, sites: Sites) -> None:
        super().__init__()
        self.torch = torch
        self.place = sites.place
        self.sites: dict[tuple[str, Place, str | None], dict[str, Any]] = {}  # (kind, place, what) -> facts
        self.flags: dict[str, Any] = {"autocast": False, "grad_enabled_in_step": False}
        #: id(tensor) -> (weak reference, place, factory)
        self.host_made: dict[int, tuple[Any, Place, str]] = {}

    def __torch_function__(
        self,
        function: Function,
        types: Any,
        arguments: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
    ) -> Any:
        named = named or {}
        result = function(*arguments, **named)
        try:
            self._note(getattr(function, "__name__", ""), arguments, named, result)
        except Exception:
            pass
        return result

    def _note(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        torch = self.torch
        if torch.is_autocast_enabled():
            self.flags["autocast"] = True
            self.flags["autocast_dtype"] = str(torch.get_autocast_gpu_dtype()).replace("torch.", "")
        if torch.is_autocast_cpu_enabled():
            self.flags["autocast"] = True
        if torch.is_grad_enabled():
            self.flags["grad_enabled_in_step"] = True
        if torch.is_anomaly_enabled():
            self.flags["anomaly_mode"] = True
        if name in FACTORIES and isinstance(result, torch.Tensor):
            self._made(name, result)
        elif name in ("to", "cuda"):
            self._moved(arguments[0], arguments, named, result)
        if name in SYNCS and isinstance(arguments[0], torch.Tensor) and arguments[0].device.type != "cpu":
            self._count("sync", SYNCS[name], {"what": SYNCS[name]})

    def _made(self, name: str, tensor: Any) -> None:
        if tensor.device.type == "cpu":
            place = self.place(sys._getframe(1))
            if place is not None:
                self.host_made[id(tensor)] = (weakref.ref(tensor), place, name)

    def _moved(self, source: Any, arguments: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        if source is result or not isinstance(result, self.torch.Tensor):
            return
        if source.device.type != "cpu":
            if result.device.type == "cpu":
                self._count("sync", "cpu", {"what": "cpu"})
            return
        if result.device.type == "cpu":
            return
        size = source.numel() * source.element_size()
        waits = not (named.get("non_blocking") or any(value is True for value in arguments[1:3]))
        pinned = source.is_pinned() if self.torch.cuda.is_available() else False
        self._count("to", None, {"non_blocking": not waits, "pinned": pinned}, size)
        reference, place, factory = self.host_made.get(id(source), (None, None, None))
        if reference is not None and reference() is source:
            self._count(
                "tensor", factory, {"device": "cpu", "to": str(result.device), "op": factory}, size, place
            )

    def _count(
        self,
        kind: str,
        what: str | None,
        facts: dict[str, Any],
        size: int | None = None,
        place: Place | None = None,
    ) -> None:
        place = place or self.place(sys._getframe(1))
        if place is None:
            return
        known = self.sites.setdefault((kind, place, what), {**facts, "calls": 0})
        known["calls"] += 1
        if size is not None:
            known["bytes"] = known.get("bytes", 0) + size

    def found(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": kind,
                "file": place[0],
                "line": place[1],
                "function": place[2],
                "facts": facts,
                "uses": [],
            }
            for (kind, place, _), facts in self.sites.items()
        ]


def leave(mode: Any) -> None:
    """Take ``mode`` off torch's stack of modes, also when the script has put others on top of it."""
    from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

    if not any(entry is mode for entry in _get_current_function_mode_stack()):
        return
    above = []
    while True:
        top = _pop_mode()
        if top is mode:
            break
        above.append(top)
    for entry in reversed(above):
        _push_mode(entry)
