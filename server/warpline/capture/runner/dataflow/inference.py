"""Keeps a dispatch mode working where inference mode ends.

At its end inference mode puts the thread's dispatch keys back as they were at its beginning, also the one
that leads to the modes on torch's stack. A mode that was pushed within it is not called after it, and
where one was taken off within it, torch looks for a mode that is not there and fails.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

_KEY = "Python"  # of torch's dispatcher


def settle() -> None:
    """Make this thread's dispatch keys agree with its stack of modes."""
    modes = torch._C._len_torch_dispatch_stack()
    if torch._C._dispatch_tls_is_dispatch_key_included(_KEY) == bool(modes):
        return
    # Pushing the first mode sets the key, and taking off the last one clears it. Torch 2.4 crashes where
    # nothing else holds the mode that is taken off.
    stack = _get_current_dispatch_mode_stack()
    held = stack or [TorchDispatchMode()]
    if not stack:
        _push_mode(held[0])
    for _ in held:
        _pop_mode()
    for mode in stack:
        _push_mode(mode)
