"""Which kernel a source line means: the Triton kernel around it, or the one that it launches."""

from __future__ import annotations

import ast
from pathlib import Path

from warpline.devices import can
from warpline.model.problem import Problem
from warpline.model.profile import Profile


def kernel_at(profile: Profile, file: Path, line: int, text: str) -> str:
    """The device's name of the kernel that ``file:line`` of ``text`` means. Raises Problem without one."""
    written = _triton_kernel(text, line)
    if written is not None:
        return written
    here = [cost for cost in profile.lines if Path(cost.file) == file and cost.line == line]
    kernels = sorted(
        (k for cost in here for k in cost.kernels if k.kind == "kernel"), key=lambda k: -k.device_ms
    )
    kind = profile.manifest.device.kind
    if not kernels and not can(kind, "kernels"):
        raise Problem(f"{file.name}:{line} launches no kernel: on this device ({kind}) none are recorded")
    if not kernels:
        raise Problem(f"{file.name}:{line} launches no kernel in this run and is not in a Triton kernel")
    plain = kernels[0].name.replace("(anonymous namespace)::", "")
    return plain.split("<")[0].split("(")[0].removeprefix("void ").split("::")[-1]


def _triton_kernel(text: str, line: int) -> str | None:
    """The name of the function with a ``…jit`` decorator of Triton's around ``line``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            decorators = (ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list)
            if any(name in ("triton.jit", "jit") for name in decorators):
                return node.name
    return None
