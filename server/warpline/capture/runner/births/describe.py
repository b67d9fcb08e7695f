"""The arguments that an object was made with, as plain JSON values; unknown ones are left out."""

from __future__ import annotations

import collections
import inspect
from types import ModuleType
from typing import Any

_LOADER = ("num_workers", "batch_size", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")
_MODULE = (
    "in_features", "out_features", "in_channels", "out_channels", "kernel_size", "stride", "padding",
    "dilation", "groups", "num_features", "normalized_shape", "eps", "p", "num_embeddings",
    "embedding_dim", "approximate", "inplace", "embed_dim", "num_heads", "batch_first", "affine",
    "elementwise_affine", "track_running_stats",
)  # fmt: skip
#: Settings that change rows which no gradient reaches.
_CHANGING = ("momentum", "weight_decay")
#: Largest number of distinct parameter shapes kept per optimizer.
_MOST_SHAPES = 200
#: Subsets of subsets that are looked into, and attributes of a dataset.
_MOST_SUBSETS, _MOST_ATTRIBUTES = 4, 200


def facts(torch: ModuleType, kind: str, thing: Any) -> dict[str, Any]:
    """The facts of ``warpline.wire.run.Site`` for a living object of that kind."""
    try:
        if kind == "loader":
            return _loader(torch, thing)
        if kind == "optimizer":
            return _optimizer(thing)
        if kind == "parallel":
            return {"type": _parallel(type(thing))}
        return _module(torch, thing)
    except Exception:
        return {}


def arguments(kind: str, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Facts that the call's arguments give, without the object."""
    if kind == "parallel" and "find_unused_parameters" in named:
        return {"find_unused_parameters": bool(named["find_unused_parameters"])}
    return {}


def _loader(torch: ModuleType, loader: Any) -> dict[str, Any]:
    """The arguments of a DataLoader that rules read."""
    found = {name: plain(getattr(loader, name, None)) for name in _LOADER}
    dataset = rows = loader.dataset
    for _ in range(_MOST_SUBSETS):
        rows = rows.dataset if isinstance(rows, torch.utils.data.Subset) else rows
    found["dataset_type"], found["rows_type"] = type(dataset).__qualname__, type(rows).__qualname__
    attributes = list(getattr(rows, "__dict__", {}).items())[:_MOST_ATTRIBUTES]
    found["rows_tensors"] = [
        name for name, value in attributes if isinstance(value, torch.Tensor) and value.device.type == "cpu"
    ]
    for name, measure in (("dataset_length", dataset), ("batches_per_epoch", loader)):
        try:
            found[name] = len(measure)
        except Exception:
            pass
    for prefix, function in (
        ("dataset", getattr(type(dataset), "__getitem__", None) or getattr(type(dataset), "__iter__", None)),
        ("rows", getattr(type(rows), "__getitem__", None)),
        ("collate", loader.collate_fn),
    ):
        if function is not None and not hasattr(inspect.unwrap(function), "__code__"):
            function = type(function).__call__  # an object that is called
        code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
        if code is not None:
            found[prefix + "_file"], found[prefix + "_line"] = code.co_filename, code.co_firstlineno
    found["shuffle"] = type(getattr(loader, "sampler", None)).__name__ == "RandomSampler"
    return found


def _optimizer(optimizer: Any) -> dict[str, Any]:
    groups = optimizer.param_groups
    first = groups[0] if groups else {}
    found = {
        "type": type(optimizer).__name__,
        "parameters": sum(len(group["params"]) for group in groups),
        "groups": len(groups),
        "elements": sum(tensor.numel() for group in groups for tensor in group["params"]),
        "devices": sorted({tensor.device.type for group in groups for tensor in group["params"]}),
    }
    found["shapes"] = _shapes(groups)
    alike = {}  # type: dict[tuple[tuple[str, Any], ...], list[Any]]
    for group in groups:
        alike.setdefault(tuple((name, group[name]) for name in _CHANGING if _plain(group, name)), []).append(
            group
        )
    if len(alike) <= _MOST_SHAPES:
        found["settings"] = [{**dict(names), "shapes": _shapes(some)} for names, some in alike.items()]
    for name in ("fused", "foreach", "capturable"):
        if name in first:
            found[name] = plain(first[name])
    return found


def _plain(group: Any, name: str) -> bool:
    """Whether a group has that setting, as a number or a flag and not as a tensor."""
    return isinstance(group.get(name), (bool, int, float))


def _shapes(groups: Any) -> list[list[int]]:
    shapes = collections.Counter(tuple(tensor.shape) for group in groups for tensor in group["params"])
    return [[count, *shape] for shape, count in shapes.most_common(_MOST_SHAPES)]


def _module(torch: ModuleType, module: Any) -> dict[str, Any]:
    """The arguments of a module that rules read."""
    found = {"type": type(module).__module__ + "." + type(module).__qualname__, "training": module.training}
    if type(module).__module__.startswith("torch.nn"):
        found["type"] = type(module).__name__
    for name in _MODULE:
        value = module.__dict__.get(name)
        if value is not None:
            found[name] = plain(value)
    if "bias" in module._parameters:
        found["bias"] = module._parameters["bias"] is not None
    weight = module._parameters.get("weight")
    if weight is None:
        weight = next(module.parameters(), None)
    if weight is not None:
        found["dtype"] = str(weight.dtype).replace("torch.", "")
        found["device"] = weight.device.type
        if weight.dim() == 4:
            last = weight.is_contiguous(memory_format=torch.channels_last)
            found["channels_last"] = last and not weight.is_contiguous()
    return found


def _parallel(kind: type) -> str:
    name = kind.__name__
    return "FSDP" if name == "FullyShardedDataParallel" else name


def plain(value: object) -> Any:
    """``value`` as JSON: unchanged if JSON has it, a tuple as a list, a container of many values (a tensor,
    an optimizer's group) or an object without a text of its own as the name of its type, anything else as its
    text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    kind = type(value)
    bare = kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__  # its address
    if bare or isinstance(value, (dict, set, frozenset)) or hasattr(value, "shape"):
        return kind.__qualname__
    return str(value)
