"""Notes the flags that the script sets: name, value and line, in the order of the settings."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Tuple

from ..imports import when_imported
from ..patches import Patches
from ..tracebacks import is_ours
from .describe import plain

#: Environment variables that change what torch does, or how fast.
ENVIRONMENT = (
    "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_PROC_BIND",
    "KMP_AFFINITY", "KMP_BLOCKTIME", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCH_LOGS",
    "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCH_CUDNN_V8_API_DISABLED", "NCCL_P2P_DISABLE", "NCCL_DEBUG",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_DISTRIBUTED_DEBUG", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
#: Functions of torch that set a flag: (module, function) -> the flag's name, "" for the function's own.
_SETTERS = {
    ("torch", "set_float32_matmul_precision"): "float32_matmul_precision",
    ("torch", "set_default_dtype"): "default_dtype",
    ("torch", "set_default_device"): "default_device",
    ("torch", "set_default_tensor_type"): "default_tensor_type",
    ("torch", "use_deterministic_algorithms"): "deterministic_algorithms",
    ("torch", "set_num_threads"): "num_threads",
    ("torch", "set_num_interop_threads"): "num_interop_threads",
    ("torch", "set_anomaly_enabled"): "anomaly_mode",
    ("torch.autograd", "set_detect_anomaly"): "anomaly_mode",
    ("torch.autograd.anomaly_mode", "set_detect_anomaly"): "anomaly_mode",
    ("torch.backends.cuda", "enable_flash_sdp"): "flash_sdp",
    ("torch.backends.cuda", "enable_mem_efficient_sdp"): "mem_efficient_sdp",
    ("torch.backends.cuda", "enable_math_sdp"): "math_sdp",
    ("torch.backends.cuda", "enable_cudnn_sdp"): "cudnn_sdp",
}
MOST = 200


class Settings:
    def __init__(self, frames: Callable[[Any], List[Dict[str, Any]]]) -> None:
        self.frames = frames
        self.patches = Patches()
        self.made: Dict[Tuple[str, Tuple[Tuple[str, int], ...]], Dict[str, Any]] = {}
        self.count = 0
        self.before = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}

    def install(self) -> None:
        """Watch ``os.environ``, and torch's flags as soon as torch is imported."""
        self.patches.replace(type(os.environ), "__setitem__", self._environment)
        when_imported("torch", self._torch)

    def remove(self) -> None:
        """Put the originals back."""
        self.patches.restore()

    def note(self, name: str, value: Any, frame: FrameType) -> None:
        """``name`` was set to ``value`` by the user's line at or outside ``frame``."""
        try:
            frames = self.frames(frame)
            if not frames or _by_library(frame):
                return
            key = name, tuple((one["file"], one["line"]) for one in frames)
            if key in self.made or len(self.made) < MOST:
                self.count += 1
                made = {"name": name, "value": plain(value), "frames": frames, "order": self.count}
                self.made[key] = made
        except Exception:
            pass

    def found(self) -> List[Dict[str, Any]]:
        """``wire.births.Setting``, in the order of the last time each was made."""
        given = [
            {"name": "os.environ[%s]" % name, "value": value, "frames": [], "order": 0}
            for name, value in self.before.items()
        ]
        return given + sorted(self.made.values(), key=lambda made: made["order"])

    def _environment(self, original: Any) -> Any:
        watched = frozenset(ENVIRONMENT)

        def __setitem__(self_: Any, name: Any, value: Any) -> None:
            original(self_, name, value)
            if name in watched:
                self.note("os.environ[%s]" % name, value, sys._getframe(1))

        return __setitem__

    def _torch(self, torch: Any) -> None:
        for (module, function), name in _SETTERS.items():
            owner = sys.modules.get(module)
            if owner is not None and callable(vars(owner).get(function)):
                self.patches.replace(owner, function, self._setter(name))
        self._properties(torch)

    def _setter(self, name: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def setter(*arguments: Any, **named: Any) -> Any:
                result = original(*arguments, **named)
                value = arguments[0] if arguments else next(iter(named.values()), None)
                self.note(name, value, sys._getframe(1))
                return result

            return setter

        return make

    def _properties(self, torch: Any) -> None:
        """Flags that are set as attributes: ``torch.backends.cudnn.benchmark = True``."""
        backends = torch.backends
        names: Dict[int, str] = {}
        for module in list(sys.modules.values()):
            name = getattr(module, "__name__", "")
            if isinstance(name, str) and name.startswith("torch.backends"):
                for attribute, found in vars(type(module)).items():
                    if type(found).__name__ == "ContextProp":
                        names[id(found)] = "%s.%s" % (name, attribute)

        def of_property(original: Any) -> Any:
            def __set__(self_: Any, thing: Any, value: Any) -> None:
                original(self_, thing, value)
                self.note(names.get(id(self_), "torch.backends"), value, sys._getframe(1))

            return __set__

        def of_matmul(original: Any) -> Any:
            def __setattr__(self_: Any, name: str, value: Any) -> Any:
                result = original(self_, name, value)
                self.note("torch.backends.cuda.matmul." + name, value, sys._getframe(1))
                return result

            return __setattr__

        prop = getattr(backends, "ContextProp", None)
        if prop is not None:
            self.patches.replace(prop, "__set__", of_property)
        matmul = type(getattr(getattr(backends, "cuda", None), "matmul", None))
        if matmul.__module__.startswith("torch"):
            self.patches.replace(matmul, "__setattr__", of_matmul)


def _by_library(frame: Any) -> bool:
    """Whether torch itself sets the flag, as its context managers do on exit."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return isinstance(name, str) and name.partition(".")[0] == "torch"
