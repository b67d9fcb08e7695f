"""Lines of the function that was running when a trace began. Names of frames as torch 2.13 wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import MAIN, KinetoRun, at_line
from warpline.attribution import attribute
from warpline.trace import foreign
from warpline.trace.running import lines_of

LOOP = """\
import torch
from torch.profiler import profile

def train_step(net, x):
    return net(x)

def main(net, opt, data):
    with profile(with_stack=True) as prof:
        for x in data:
            x = torch.mm(x, torch.ones(x.shape))
            loss = net(
                x,
            ).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
            for name in range(2):
                print(name)
            prof.step()
"""
CALLS = [  # of a step; the loader, a module, decorated methods: under other names than in the source
    ("torch/utils/data/dataloader.py(733): __next__", 9),
    ("<built-in method ones of type object at 0x7f78c20cea40>", 10),
    ("<built-in method mm of type object at 0x7f78c20cea40>", 10),
    ("nn.Module: Sequential_0", 11),
    ("<built-in method sum of Tensor object at 0x7f789f3d2670>", 13),
    ("torch/_tensor.py(566): backward", 14),
    ("torch/optim/optimizer.py(509): wrapper", 15),
    ("torch/_compile.py(42): inner", 16),
    ("<built-in function print>", 18),
    ("<built-in function print>", 18),
    ("torch/profiler/profiler.py(1150): step", 19),
]


@pytest.mark.parametrize("at", [8, 19])
def test_calls_of_a_loop(at: int) -> None:
    """Begun by ``with profile(...)`` before the loop, or by ``prof.step()`` at its end."""
    first = "torch/profiler/profiler.py(1118): __enter__" if at == 8 else CALLS[-1][0]
    called = [first, *(name for name, _ in CALLS * 3)]
    lines = lines_of(LOOP, at, called)
    assert lines[1:] == [line for _, line in CALLS * 3]


def test_source_that_is_not_python_or_calls_nothing() -> None:
    for source in ("def f(:", "", "x = 1\ny = x + x\n"):
        assert lines_of(source, 1, ["<built-in function len>"] * 2) == [1, 1]


def test_the_step_is_not_all_at_the_profilers_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    run = KinetoRun(tmp_path / "run", 1000)
    frames = [(f"{script}(19): main", 0, 1000), ("torch/profiler/profiler.py(1227): step", 1, 5)]
    frames += [("<built-in method mm of type object at 0x7f>", 10, 300), ("nn.Module: Net_0", 400, 300)]
    frames += [("torch/profiler/profiler.py(1227): step", 950, 40)]
    for name, start, length in frames:
        run.complete("python_function", name, (start, length), (MAIN, MAIN))
    run.mark("ProfilerStep#3", 0, 1000)
    run.op("aten::mm", 20, 250)
    run.op("aten::linear", 420, 200)
    run.kernel(30, 300, launched=25)
    run.kernel(430, 100, launched=425)
    profile = attribute(foreign.read(run.write() / "trace.json"))
    assert at_line(profile, 10).device_ms == pytest.approx(0.3)
    assert at_line(profile, 11).device_ms == pytest.approx(0.1)
    assert at_line(profile, 19).device_ms == 0
    script.unlink()  # without the source: where it stood when recording began
    profile = attribute(foreign.read(tmp_path / "run" / "trace.json"))
    assert at_line(profile, 19).device_ms == pytest.approx(0.4)


def test_code_that_is_too_deep_keeps_the_line_it_was_at() -> None:
    depth = 1500  # parsed, but one generator for each of its terms is too many
    source = f"def main():\n    prof.step()\n    x = {' + '.join(['1'] * depth)}\n    f()\n"
    called = ["t.py(9): step", "t.py(9): f"]
    assert lines_of(source, 2, called) == [2, 2]
