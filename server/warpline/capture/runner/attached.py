"""What ``warpline attach`` has a running process of Python 3.14 do (``sys.remote_exec``): write down when its
optimizers step. The text of this file is run there by itself, so it imports nothing of ours."""

from __future__ import annotations

import os
import sys
import time
from types import CodeType
from typing import Any

_monitoring: Any = getattr(sys, "monitoring", None)
_NAME = "warpline attach"
_TOOLS = (4, 3)  # IDs of sys.monitoring that no kind of tool has reserved


def step_code(optimizer_module: Any) -> CodeType:
    """The code that every optimizer's ``step`` runs first, with the optimizer as ``args[0]``, in the module
    ``torch.optim.optimizer``. Raises LookupError where torch has none."""
    for one in optimizer_module.Optimizer.profile_hook_step.__code__.co_consts:
        if isinstance(one, CodeType) and one.co_name == "wrapper":
            return one
    raise LookupError("no wrapper of step")


def watch(path: str, seconds: float) -> None:
    """Add a line to the file ``path`` for each step that begins within ``seconds`` from now: ``SECONDS ID
    CLASS``, the first of ``time.monotonic()``, the last two of its optimizer.

    Events of one code object are switched on: nothing of torch's or of the script's is replaced, and no other
    code gets slower. They are switched off at the first step after that, or when nothing can be written.
    """
    module = sys.modules.get("torch.optim.optimizer")
    if module is None:
        return
    events = _monitoring
    code = step_code(module)
    tool = next((one for one in _TOOLS if events.get_tool(one) is None), None)
    if tool is None:
        return
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    end = time.monotonic() + seconds

    def stop() -> None:
        os.close(file)
        events.set_local_events(tool, code, 0)
        events.register_callback(tool, events.events.PY_START, None)
        events.free_tool_id(tool)

    def began(_code: CodeType, _offset: int) -> None:
        now = time.monotonic()
        try:
            if now > end:
                stop()
            else:
                optimizer = sys._getframe(1).f_locals["args"][0]
                os.write(file, f"{now} {id(optimizer)} {type(optimizer).__name__}\n".encode())
        except Exception:  # it would be the script's
            stop()

    events.use_tool_id(tool, _NAME)
    events.register_callback(tool, events.events.PY_START, began)
    events.set_local_events(tool, code, events.events.PY_START)
