"""Queries CUDA's driver about a graph under capture, through ctypes."""

from __future__ import annotations

import ctypes
from typing import Callable, Optional, Tuple

from ....wire.cudagraphs import COPY, KERNEL, SET

#: CUgraphNodeType of the nodes that leave something in a trace (cuda.h).
_KINDS = {0: KERNEL, 1: COPY, 2: SET}


#: Kind (None: nothing that a trace shows), grid, block, and name of a kernel.
Shape = Tuple[int, int, int]
Described = Tuple[Optional[int], Shape, Shape, str]


class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


class Driver:
    """Raises OSError or AttributeError where there is no NVIDIA driver of CUDA 12 or newer."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        self._info = library.cuStreamGetCaptureInfo_v2
        self._nodes = library.cuGraphGetNodes
        self._type = library.cuGraphNodeGetType
        self._kernel = library.cuGraphKernelNodeGetParams_v2
        self._name = getattr(library, "cuFuncGetName", None)  # from CUDA 12.3 on
        self._demangle = _demangler()

    def graph(self, stream: int) -> int | None:
        """The handle of the graph that ``stream`` is captured into; None where it is not captured."""
        status, number, handle = ctypes.c_int(0), ctypes.c_ulonglong(0), ctypes.c_void_p(0)
        failed = self._info(
            ctypes.c_void_p(stream),
            ctypes.byref(status),
            ctypes.byref(number),
            ctypes.byref(handle),
            None,
            None,
        )
        return None if failed else handle.value

    def count(self, graph: int) -> int:
        """How many nodes it has so far, 0 where the driver does not say."""
        number = ctypes.c_size_t(0)
        failed = self._nodes(ctypes.c_void_p(graph), None, ctypes.byref(number))
        return 0 if failed else number.value

    def nodes(self, graph: int) -> list[Described]:
        """Each node, in order of their making."""
        number = ctypes.c_size_t(self.count(graph))
        handles = (ctypes.c_void_p * max(1, number.value))()
        if self._nodes(ctypes.c_void_p(graph), handles, ctypes.byref(number)):
            return []
        return [self._described(ctypes.c_void_p(handle)) for handle in handles[: number.value]]

    def _described(self, node: ctypes.c_void_p) -> Described:
        kind = ctypes.c_int(-1)
        nothing: Shape = (0, 0, 0)
        if self._type(node, ctypes.byref(kind)):
            return None, nothing, nothing, ""
        found = _KernelNode()
        if kind.value != 0 or self._kernel(node, ctypes.byref(found)):
            return _KINDS.get(kind.value), nothing, nothing, ""
        (gx, gy, gz), (bx, by, bz) = found.grid, found.block
        return KERNEL, (gx, gy, gz), (bx, by, bz), self._name_of(found.function)

    def _name_of(self, function: int | None) -> str:
        name = ctypes.c_char_p()
        if self._name is None or not function or self._name(ctypes.byref(name), ctypes.c_void_p(function)):
            return ""
        return self._demangle(name.value or b"")


def _demangler() -> Callable[[bytes], str]:
    """The C++ runtime's own, which the profiler uses as well."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return lambda name: name.decode(errors="replace")
    demangle.restype = ctypes.c_void_p

    def demangled(name: bytes) -> str:
        status = ctypes.c_int(0)
        text = demangle(ctypes.c_char_p(name), None, None, ctypes.byref(status))
        if not text:
            return name.decode(errors="replace")
        said = ctypes.string_at(text).decode(errors="replace")
        free(ctypes.c_void_p(text))
        return said

    return demangled
