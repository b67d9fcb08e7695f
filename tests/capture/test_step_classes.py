"""Training and evaluation are never mixed in one window."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from tests.conftest import shortened
from warpline.capture.runner.steps.classes import Classes, of_class, usual
from warpline.capture.runner.steps.signals import GRAD_MODE

TRAIN, EVAL, OTHER = (
    frozenset({("backward",)}),
    frozenset({("backward",), ("eval",)}),
    frozenset({("batch", 1)}),
)

HEAD = """\
import torch, time
from torch import nn
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
X = torch.randn(512, 16)
Y = torch.randn(512, 16)
"""
#: name -> (script, source of the steps). Lines of the training end in "# TRAIN", the others' in "# EVAL".
SCRIPTS = {
    "an update by hand, and no loader": (
        """\
for epoch in range(100000):
    for at in range(0, 512, 64):
        loss = (net(X[at : at + 64]) - Y[at : at + 64]).square().mean()  # TRAIN
        net.zero_grad()
        loss.backward()  # TRAIN
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.grad  # TRAIN
    with torch.no_grad():
        for at in range(20):
            net(X)  # EVAL
""",
        "backward",
    ),
    "plain tensors": (
        """\
w = torch.randn(16, 16, requires_grad=True)
for at in range(100000):
    loss = (X @ w).relu().sum()  # TRAIN
    loss.backward()  # TRAIN
    w.data -= 1e-6 * w.grad  # TRAIN
    w.grad = None
    if at % 8 == 0:
        with torch.no_grad():
            for k in range(20):
                (X @ w).relu()  # EVAL
""",
        "backward",
    ),
    "autograd.grad, and one function for both": (
        """\
def run(train, times):
    for at in range(times):
        with torch.set_grad_enabled(train):
            loss = (net(X) - Y).square().mean()
        if train:
            for p, g in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
                p.data -= 0.01 * g  # TRAIN
        else:
            time.sleep(0.001)  # EVAL
while True:
    run(False, 20)
    run(True, 8)
""",
        "backward",
    ),
    "an evaluation first, for long": (
        """\
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
def evaluate():
    net.eval()
    with torch.no_grad():
        for at in range(40):
            net(X)
            time.sleep(0.05)  # EVAL
    net.train()
for at in range(2):  # 4 seconds, where 2 are waited for a step that nothing announces
    evaluate()
while True:
    (net(X) - Y).square().mean().backward()  # TRAIN
    optimizer.step()  # TRAIN
    optimizer.zero_grad()
""",
        "optimizer",
    ),
    "an evaluation every 8 steps, by the loader of another data set": (
        """\
from torch.utils.data import DataLoader, TensorDataset
train, test = DataLoader(TensorDataset(X, Y), 64), DataLoader(TensorDataset(X[:256], Y[:256]), 64)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
at = 0
while True:
    for x, y in train:
        (net(x) - y).square().mean().backward()  # TRAIN
        optimizer.step()  # TRAIN
        optimizer.zero_grad()
        at += 1
        if at % 8 == 0:
            for x, y in test:
                net(x)  # EVAL
                time.sleep(0.002)  # EVAL
""",
        "optimizer",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_training_without_evaluation(name: str, tmp_path: Path) -> None:
    text, source = SCRIPTS[name]
    environment = shortened(steps__beat__PATIENCE_BEFORE_BACKWARD_S=2)
    captured = Captured(request(write(tmp_path, HEAD + text), environment=environment), tmp_path)
    assert captured.manifest.step_source == source
    assert len(captured.manifest.captured) >= 1
    lines = (HEAD + text).split("\n")
    ran = {lines[line - 1].rpartition("# ")[2] for _, line in captured.lines() if "# " in lines[line - 1]}
    assert ran == {"TRAIN"}
    before = any(note.startswith("forward passes before") for note in captured.manifest.notes)
    assert captured.manifest.others_share > 0 or before


def test_the_class_of_most_steps() -> None:
    assert usual([TRAIN] * 9 + [EVAL]) == TRAIN
    assert usual([TRAIN, EVAL] * 5) is None, "now this and now that is what a step does here"
    assert usual([]) is None
    assert of_class((1, 2, 3), (TRAIN, EVAL, TRAIN), TRAIN) == (1, 3)
    assert of_class((1, 2, 3), (TRAIN, EVAL, TRAIN), None) == (1, 2, 3)


def test_the_share_of_the_others() -> None:
    classes = Classes(world=1)
    classes.timed([10] * 9 + [60], [TRAIN] * 9 + [EVAL], TRAIN)
    assert classes.share == pytest.approx(50 / 150)
    assert classes.is_other(EVAL) and not classes.is_other(TRAIN)
    (note,) = classes.notes(0.2)
    assert note.startswith("an evaluation took 33 % of the time while steps were timed, in 1 of 10")
    assert classes.notes(12.3)[1].startswith("forward passes before the first training step took 12 s")


def test_a_rollout_is_not_called_an_evaluation_and_can_be_included() -> None:
    """An update of a policy in two steps out of ten begins with hundreds of calls under ``no_grad``."""
    classes = Classes(world=1)
    rollout = TRAIN | {(GRAD_MODE, 1, 10, False)}
    classes.timed([10] * 8 + [110, 110], [TRAIN] * 8 + [rollout] * 2, TRAIN)
    (note,) = classes.notes(0)
    assert note.startswith("code without gradients (an evaluation or a rollout) took 67 % of the time")
    assert note.endswith("(--loop FILE:LINE measures whole iterations of the loop around it)")


def test_ranks_take_every_step() -> None:
    classes = Classes(world=2)
    classes.timed([1, 1], [TRAIN, TRAIN], TRAIN)
    assert not classes.is_other(EVAL)


def test_steps_of_any_class() -> None:
    classes = Classes(world=1)
    classes.timed([1, 1], [TRAIN, OTHER], None)
    assert not classes.is_other(EVAL) and classes.share == 0 and classes.notes(0) == []
