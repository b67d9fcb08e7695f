"""Memory by line on a CPU: tensors of known size, planted on known lines of a real script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline import pipeline
from warpline.model.profile import LineCost, Profile
from warpline.view.memory import holders

pytestmark = pytest.mark.process

MIB = 1 << 20
SCRIPT = """
import torch

MIB = 1 << 20
before = torch.ones(8 * MIB // 4)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
kept, latest = [], {}

def made():
    return torch.ones(3 * MIB // 8)             # PLANTED 1.5 MiB, kept by who called

def step():
    large = torch.ones(12 * MIB // 4)           # PLANTED 12 MiB
    doubled = large * 2                         # PLANTED 12 MiB more
    kept.append(torch.ones(MIB // 4))           # PLANTED 1 MiB, a leak
    kept.append(made())
    latest["it"] = torch.ones(2 * MIB // 4)     # PLANTED 2 MiB, replaced by the next step's
    loss = model(torch.ones(4, 64)).sum() + doubled[0]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for _ in range(300):
    step()
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("memory")
    return pipeline.profile_of(Captured(request(write(folder, SCRIPT), warmup=2), folder).run)


def at(profile: Profile, code: str) -> LineCost:
    number = 1 + next(at for at, line in enumerate(SCRIPT.splitlines()) if code in line)
    return next(cost for cost in profile.lines if cost.line == number)


def test_lines_hold_at_the_peak_what_they_allocated(profile: Profile) -> None:
    """The peak is in the last of the three captured steps, when both leaks have grown three times."""
    assert at(profile, "large = ").memory_bytes == 12 * MIB
    assert at(profile, "doubled = ").memory_bytes == 12 * MIB
    assert at(profile, "a leak").memory_bytes == 3 * MIB
    assert at(profile, "return torch.ones").memory_bytes == 3 * 1.5 * MIB


def test_what_each_step_keeps_stands_at_the_line_that_allocates_it(profile: Profile) -> None:
    kept = {cost.line: cost.kept_bytes for cost in profile.lines if cost.kept_bytes}
    leak, made = at(profile, "a leak"), at(profile, "return torch.ones")
    assert kept == {leak.line: MIB, made.line: 1.5 * MIB}
    assert profile.totals["kept_bytes"] == 2.5 * MIB


def test_what_was_made_before_the_steps_has_no_line(profile: Profile) -> None:
    assert not [cost for cost in profile.lines if cost.function == "<module>" and cost.memory_bytes]


def test_the_view_adds_up(profile: Profile) -> None:
    found = holders(profile)
    assert sum(row.share for row in found.rows) == pytest.approx(1, abs=0.01)
    assert [row.kept_bytes for row in found.rows if row.kept_bytes] == [1.5 * MIB, MIB]
    number = at(profile, "return torch.ones").line
    assert found.said[0].startswith(f"train.py:{number} keeps 1.5 MiB a step")
    only = holders(profile, top=1)
    assert [row.held_bytes for row in only.rows] == [12 * MIB]
    assert only.rest.startswith(
        f"{len([cost for cost in profile.lines if cost.memory_bytes]) - 1} more lines"
    )


CHECKPOINTED = """
import torch
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
weight = torch.nn.Parameter(torch.ones(MIB // 4))
optimizer = torch.optim.SGD([weight], lr=1e-6)

def block(x):
    scratch = x + 1
    return (x * weight).sigmoid().tanh()

for _ in range(300):
    x = weight * 1
    for _ in range(3):
        x = checkpoint(block, x, use_reentrant={reentrant})
    optimizer.zero_grad()
    x.sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("reentrant", "tensors"), [(False, 3), (True, 2)])
def test_what_recomputed_passes_leave_is_what_their_backward_passes_read(
    tmp_path: Path, reentrant: bool, tensors: int
) -> None:
    script = write(tmp_path, CHECKPOINTED.format(reentrant=reentrant))
    profile = pipeline.profile_of(Captured(request(script, warmup=2), tmp_path).run)
    # The results of the sigmoid and of the tanh, of each of three blocks. The other variant ends with an
    # exception as soon as it has what it needs, and the frames in its traceback hold the scratch tensor too.
    assert profile.totals["recomputed_bytes"] == 3 * tensors * MIB


def test_without_checkpoints_nothing_is_left(profile: Profile) -> None:
    assert profile.totals["recomputed_bytes"] == 0


@pytest.mark.parametrize(("growth", "said"), [(2048.0, "2.0 KiB more"), (-2048.0, "2.0 KiB less")])
def test_memory_that_shrinks_is_said_to(profile: Profile, growth: float, said: str) -> None:
    memory = replace(profile.facts.memory, growth_bytes_per_step=growth)
    found = holders(replace(profile, facts=replace(profile.facts, memory=memory)))
    assert any(f"over the timed steps: {said} after each" in one for one in found.said)
