"""Measured peaks: half a second once, kept by device, and nothing of the script's settings changed.

On the CPU, with the device's properties played; ``tests/gpu`` measures a real one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, environment

ASK = f"""
import json, sys, types
sys.path.insert(0, {str(ROOT / "server")!r})
import torch
from warpline.capture.runner.device import peaks
torch.set_num_threads(1)
peaks.LARGEST, peaks.EACH_S, peaks.COPY_BYTES = 512, 0.01, 1 << 20
torch.cuda.is_initialized = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.get_device_properties = lambda at: types.SimpleNamespace(name=sys.argv[2], multi_processor_count=7)
asked, on_cpu = [], peaks.measured
peaks.measured = lambda torch, device: asked.append(device) or on_cpu(torch, "cpu")
torch.manual_seed(1)
before = torch.get_rng_state()
torch.set_float32_matmul_precision("medium")
def of(measure):
    return peaks.device_peaks(torch, measure, sys.argv[1])
found = [of(False), of(True), of(True), of(False)]
assert torch.get_float32_matmul_precision() == "medium"
assert torch.equal(torch.get_rng_state(), before)
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    on_cpu(torch, "cpu")
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
print(json.dumps([asked, found]))
"""


def ask(folder: Path, device: str) -> tuple[list[str], list[dict[str, float]]]:
    command = [sys.executable, "-c", ASK, str(folder), device]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    asked, found = json.loads(done.stdout)
    return asked, found


def test_measured_once_and_kept_by_device(tmp_path: Path) -> None:
    asked, (unasked, first, again, kept) = ask(tmp_path / "cache", "Abacus 9")
    assert unasked == {}
    assert asked == ["cuda"], "once"
    assert first.keys() == {"fp32", "tf32", "bf16", "bytes_per_s"}
    assert min(first.values()) > 0
    assert first == again == kept
    (name,) = json.loads((tmp_path / "cache/peaks.json").read_text())
    assert name.startswith("Abacus 9, 7 multiprocessors, driver ")
    # Another device is measured for itself; what is kept of the first stays.
    asked, (unasked, *_) = ask(tmp_path / "cache", "Abacus 10")
    assert (asked, unasked) == (["cuda"], {})
    assert json.loads((tmp_path / "cache/peaks.json").read_text())[name] == first


def test_what_cannot_be_read_is_measured_anew(tmp_path: Path) -> None:
    (tmp_path / "peaks.json").write_text('{"Abacus 9": [1]}')
    asked, (_, first, *_) = ask(tmp_path, "Abacus 9")
    assert asked == ["cuda"]
    assert first["bytes_per_s"] > 0
