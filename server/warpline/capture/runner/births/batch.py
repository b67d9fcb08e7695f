"""What is in a loader's batches that torch does not pin: an object of a class of the user's without a
``pin_memory`` method."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..lines.userfiles import UserFiles

#: Elements of a batch that are looked at; a list of more holds texts or numbers.
_MOST = 32


class Batch:
    """``look`` takes each batch; its exceptions never reach the script."""

    def __init__(self, user_files: UserFiles) -> None:
        self.user_files = user_files
        self.first = True
        self.kind: type[Any] | None = None  # the user's class
        self.facts: dict[str, Any] = {}  # of ``wire.sites.Loader``

    def look(self, batch: Any) -> None:
        """The first batch tells the class, all of them which attributes are always tensors to pin."""
        if self.kind is None and not self.first:
            return
        try:
            self._look(batch)
        except Exception:
            self.facts.pop("batch_tensors", None)

    def _look(self, batch: Any) -> None:
        found = next((one for one in _parts(batch) if self._is_own(type(one))), None)
        if self.first:
            self.first = False
            self.facts["batch_type"] = type(batch if found is None else found).__qualname__
            if found is not None:
                self.kind = type(found)
                self.facts["batch_file"] = self._file(self.kind)
                self.facts["batch_tensors"] = _tensors(found)
        elif type(found) is self.kind:
            own = set(_tensors(found))
            self.facts["batch_tensors"] = [name for name in self.facts["batch_tensors"] if name in own]
        else:
            self.facts["batch_tensors"] = []

    def _is_own(self, kind: type[Any]) -> bool:
        if hasattr(kind, "pin_memory") or issubclass(kind, (Mapping, Sequence)):
            return False
        return self._file(kind) is not None

    def _file(self, kind: type[Any]) -> str | None:
        module = sys.modules.get(kind.__module__)
        path = getattr(module, "__file__", None)
        return self.user_files[path] if isinstance(path, str) else None


def _parts(batch: Any) -> Iterator[Any]:
    """The batch, and what torch finds in it. A tuple of the user's, or a dict, it goes into."""
    if isinstance(batch, Mapping):
        yield from islice(batch.values(), _MOST)
    elif isinstance(batch, (tuple, list)):
        yield from batch[:_MOST]
    else:
        yield batch


def _tensors(thing: Any) -> list[str]:
    """Attributes that are tensors in the host's memory, and that can be assigned."""
    import torch

    if any("__setattr__" in vars(owner) for owner in type(thing).__mro__[:-1]):
        return []  # a frozen dataclass, say
    names = dict.fromkeys(getattr(thing, "__dict__", ()))
    for owner in type(thing).__mro__:
        slots = vars(owner).get("__slots__", ())
        names.update(dict.fromkeys((slots,) if isinstance(slots, str) else slots))
    return [
        name
        for name in names
        if not name.startswith("__")
        and isinstance(value := getattr(thing, name, None), torch.Tensor)
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and not value.requires_grad
    ]
