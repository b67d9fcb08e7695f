"""Which calls need a value from the device on the host, so that the host waits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType, ModuleType
from typing import Any

from ..patches import Function, Patches

#: By the name of the torch function.
READS = {
    "item": "item", "tolist": "tolist", "numpy": "numpy", "__array__": "numpy", "cpu": "cpu",
    "__bool__": "bool", "is_nonzero": "bool", "__int__": "item", "__float__": "item", "__index__": "item",
    "__contains__": "item", "__repr__": "print", "__format__": "print", "nonzero": "nonzero",
    "argwhere": "nonzero", "masked_select": "mask", "unique": "unique", "unique_consecutive": "unique",
    "bincount": "bincount", "equal": "equal", "allclose": "allclose", "__complex__": "item",
    "linalg_inv": "linalg", "inverse": "linalg", "linalg_cholesky": "linalg", "cholesky": "linalg",
    "linalg_solve": "linalg",
}  # fmt: skip
#: Functions that take numbers, mostly sizes. A tensor given instead is read on the host.
WITH_NUMBERS = frozenset({
    "full", "zeros", "ones", "empty", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint",
    "randperm", "new_full", "new_zeros", "new_ones", "new_empty", "view", "reshape", "expand", "repeat",
    "narrow", "topk", "select",
})  # fmt: skip
#: Functions that read the given values one by one.
FROM_VALUES = ("tensor", "as_tensor", "asarray")
MOST_VALUES = 8  # most values of a list to look at
#: Of those above, the ones of a tensor, which comes first.
METHODS = frozenset({"view", "reshape", "expand", "repeat", "narrow", "topk", "select"}) | frozenset(
    name for name in WITH_NUMBERS if name.startswith("new_")
)
#: torch's own Python wrappers, which are skipped to find the calling line.
BETWEEN = ("/torch/overrides.py", "/torch/_tensor.py", "/torch/functional.py", "/torch/utils/_contextlib.py")


def what_waits(torch: ModuleType, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """What a call of ``name`` waits for, as ``Sync.what``; None when it does not.

    An index by a mask has as many rows as the mask has ones: the host must know the number.
    """
    first = arguments[0] if arguments else None
    if name in WITH_NUMBERS:
        given = [one for one in (*arguments, *named.values()) if one is not first or name not in METHODS]
        return "item" if any(_scalar(torch, one) for one in given) else None
    if name in FROM_VALUES:
        return "item" if isinstance(first, (list, tuple)) and _on_device(torch, first) else None
    if not isinstance(first, torch.Tensor):
        return None
    if first.device.type == "cpu":
        return "cpu" if _written_from_device(torch, name, arguments, named) else None
    if name in READS:
        return READS[name]
    if name == "__getitem__":
        return "mask" if _masked(torch, arguments[1]) else "item" if _counted(torch, arguments[1]) else None
    if name in ("__setitem__", "index_put_", "index_put"):
        # A single value is written wherever the mask is set: that needs no count.
        value = arguments[2] if len(arguments) > 2 else named.get("values")
        several = isinstance(value, torch.Tensor) and value.numel() > 1
        return "mask" if several and _masked(torch, arguments[1]) else None
    if name == "where":
        return "nonzero" if len(arguments) == 1 and not named else None
    if name == "repeat_interleave":
        repeats = named.get("repeats", arguments[1] if len(arguments) > 1 else first)
        known = named.get("output_size") is not None
        return "repeat_interleave" if isinstance(repeats, torch.Tensor) and not known else None
    if name == "one_hot":
        classes = named.get("num_classes", arguments[1] if len(arguments) > 1 else -1)
        return "one_hot" if classes == -1 else None
    return None


def _scalar(torch: ModuleType, value: Any) -> bool:
    """Whether ``value``, or something in it, is one number on the device."""
    if isinstance(value, (list, tuple)):
        return any(_scalar(torch, one) for one in value[:MOST_VALUES])
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type != "cpu"


def _counted(torch: ModuleType, index: Any) -> bool:
    """Whether an index contains a device scalar, as a slice's end or for a whole dimension."""
    parts = index if isinstance(index, tuple) else (index,)
    ends = [end for part in parts if isinstance(part, slice) for end in (part.start, part.stop, part.step)]
    return any(
        _scalar(torch, one) and not one.is_floating_point()
        for one in (*parts, *ends)
        if isinstance(one, torch.Tensor)
    )


def _on_device(torch: ModuleType, value: Any) -> bool:
    """Whether ``value``, or something in it, is a tensor of the device."""
    if isinstance(value, (list, tuple)):
        return any(_on_device(torch, one) for one in value[:MOST_VALUES])
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"


def _written_from_device(
    torch: ModuleType, name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> bool:
    """Whether a host tensor is filled from the device by a call that waits for it."""
    if name == "__setitem__":
        return _on_device(torch, arguments[2])
    if name != "copy_":
        return False
    later = named.get("non_blocking", arguments[2] if len(arguments) > 2 else False)
    return _on_device(torch, named.get("src", arguments[1] if len(arguments) > 1 else None)) and not later


def _masked(torch: ModuleType, index: Any) -> bool:
    return any(
        isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8) and part.dim() > 0
        for part in (index if isinstance(index, (tuple, list)) else (index,))
    )


def caller(frame: FrameType | None) -> FrameType | None:
    """The frame that asked: the first at or outside ``frame`` that is not a wrapper of torch's."""
    while frame is not None and frame.f_code.co_filename.replace("\\", "/").endswith(BETWEEN):
        frame = frame.f_back
    return frame


def watch_synchronize(
    torch: ModuleType, patches: Patches, note: Callable[[str, FrameType, int], None]
) -> None:
    """``note("synchronize", frame, nanoseconds)`` for each wait that the script asks for by that name."""

    def make(original: Function) -> Function:
        def synchronize(*arguments: Any, **named: Any) -> Any:
            began = perf_counter_ns()
            result = original(*arguments, **named)
            note("synchronize", sys._getframe(1), perf_counter_ns() - began)
            return result

        return synchronize

    for owner in (torch.cuda, getattr(torch, "accelerator", None), torch.cuda.Event, torch.cuda.Stream):
        if owner is not None:
            patches.replace(owner, "synchronize", make)
