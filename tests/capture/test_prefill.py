"""One prefill is recorded after the capture, where no captured step was one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline.attribution import attribute
from warpline.trace import Trace, read

#: What Warpline knows of transformers: the function whose first forward reads the prompt.
PACKAGE = """\
class GenerationMixin:
    def generate(self, prompt, new):
        self(prompt)
        for _ in range(new - 1):
            self(prompt[:1])
"""
SCRIPT = """\
import torch
from torch import nn
from transformers.generation.utils import GenerationMixin

class Model(nn.Module, GenerationMixin):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 256)
    def forward(self, tokens):
        return self.layer(tokens)

model = Model()
prompt = torch.randn(2048, 256)
with torch.no_grad():
    for _ in range(CALLS):
        model.generate(prompt, NEW)
"""


def generated(folder: Path, calls: int, new: int, then: str = "") -> Trace:
    packages, project = folder / "site-packages", folder / "project"
    (packages / "transformers/generation").mkdir(parents=True)
    (packages / "transformers/generation/utils.py").write_text(PACKAGE)
    project.mkdir()
    script = write(project, SCRIPT.replace("CALLS", str(calls)).replace("NEW", str(new)) + then)
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(packages)}
    return read(Captured(request(script, environment=environment), folder).run)


@pytest.mark.parametrize("new", [60, 20_000], ids=["timed", "calls that last longer than the windows"])
def test_a_prefill_s_work_is_recorded(tmp_path: Path, new: int) -> None:
    trace = generated(tmp_path, 100_000, new)
    facts = trace.facts
    assert (facts.prefill_ns is None) == bool(facts.prefill_steps)
    note = next(note for note in attribute(trace).notes if "prefill" in note)
    assert "not timed" not in note and "not recorded" not in note
    decode = sorted(trace.manifest.timed_ns)[len(trace.manifest.timed_ns) // 2]
    assert facts.prefill_device_ns is not None and facts.prefill_device_ns > 5 * decode


def test_a_script_that_ends_before_another_prefill_is_reported(tmp_path: Path) -> None:
    trace = generated(tmp_path, 1, 100_000)
    assert trace.facts.prefill_device_ns is None and trace.manifest.captured


def test_a_server_that_gets_no_further_request_is_reported(tmp_path: Path) -> None:
    trace = generated(tmp_path, 1, 100_000, "import time\ntime.sleep(300)\n")
    assert trace.facts.prefill_device_ns is None and trace.manifest.captured
