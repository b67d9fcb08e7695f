"""What a Triton kernel is given is known. Triton needs a GPU to launch: its class is stood in for here."""

from __future__ import annotations

import sys
import types

import pytest

from warpline.capture.runner.device.triton import TritonLaunches


class Tensor:
    def __init__(self, address: int, elements: int) -> None:
        self.data_ptr, self.numel, self.element_size = (lambda: address), (lambda: elements), (lambda: 4)


class JITFunction:
    """As in triton.runtime.jit: ``kernel[grid](…)`` calls ``run``."""

    def __init__(self, name: str) -> None:
        self.fn = types.FunctionType((lambda: None).__code__, {}, name)
        self.arg_names = ["source", "target", "width", "BLOCK"]

    def run(self, *arguments: object, grid: object = None, warmup: bool = False, **named: object) -> str:
        return "launched"


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> TritonLaunches:
    module = types.ModuleType("triton.runtime.jit")
    monkeypatch.setattr(module, "JITFunction", JITFunction, raising=False)
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", module)
    return TritonLaunches(lambda frame: ("/train.py", 7, "transpose"))


def test_bytes_of_what_a_kernel_is_given_are_summed(launches: TritonLaunches) -> None:
    before = JITFunction.run
    launches.start()
    kernel, source, target = JITFunction("transpose_rows"), Tensor(16, 1000), Tensor(32, 500)
    for _ in range(3):
        assert kernel.run(source, target, 1024, grid=(8,), BLOCK=64) == "launched"
    kernel.run(source, target, 512, 64, grid=(8,))
    kernel.run(source, target, 512, 0.5, grid=(8,))
    kernel.run(source, target, grid=(8,), warmup=True)
    kernel.run(source, x=source, grid=(8,))
    launches.stop()
    assert JITFunction.run is before
    kernel.run(source, grid=(8,))
    (site,) = launches.found()
    assert (site["kind"], site["file"], site["line"]) == ("triton", "/train.py", 7)
    assert site["facts"] == {"kernel": "transpose_rows", "calls": 6, "bytes": 5 * 6000 + 4000} | {
        "numbers": {"width": 512, "BLOCK": 64},
        "floats": ["BLOCK"],
    }


def test_nothing_of_it_reaches_the_script(launches: TritonLaunches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "place", None)
    launches.start()
    assert JITFunction("broken").run(Tensor(16, 1), grid=(1,)) == "launched"
    launches.stop()
    assert launches.found() == []
