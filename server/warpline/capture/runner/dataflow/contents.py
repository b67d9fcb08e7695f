"""What tensors hold that the host made outside torch, of an array of NumPy's or of a list."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any, Optional

#: Of tensors with more memory nothing is known. Chosen, not fitted.
MOST_BYTES = 1 << 24


def content(torch: Any, tensor: Any) -> Optional[bytes]:
    """A digest of a tensor on the host that nothing has written to since it was made.

    None for parameters, for what a loader has pinned, and for what is often the same by chance: integers, as
    lengths and labels are, and floats of no more than two values, as flags and rewards are."""
    plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not plain or not tensor.is_floating_point() or tensor.is_inference() or tensor._version:
        return None
    memory = tensor.untyped_storage()
    if memory.nbytes() > MOST_BYTES or tensor.numel() < 3 or tensor.is_pinned():
        return None
    flat = tensor.detach().flatten()
    others = flat[flat != flat[0]]
    if not len(others) or bool((others == others[0]).all()):
        return None
    return hashlib.blake2b((ctypes.c_char * memory.nbytes()).from_address(memory.data_ptr())).digest()
