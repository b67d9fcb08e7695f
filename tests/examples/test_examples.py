"""The examples, profiled for real on this machine: the hot line is the one that their README names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, ExampleRun, warpline

EXAMPLES = ROOT / "examples"


def profiled(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The report of ``examples/NAME/slow.py``, and its lines by their stripped source."""
    script = EXAMPLES / name / "slow.py"
    done = warpline(
        *("profile", "--steps", "3", "--warmup", "2", "--run-dir", folder, "--json", "-", script), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    texts = {path: path.read_text().splitlines() for path in script.parent.glob("*.py")}
    lines = {texts[Path(line["file"])][line["line"] - 1].strip(): line for line in report["lines"]}
    return report, lines


def rules(report: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in report["findings"]}


def test_each_has_a_script_and_a_page() -> None:
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir()]
    assert len(folders) == 5
    assert all((folder / "slow.py").is_file() and (folder / "README.md").is_file() for folder in folders)


def test_the_loader_waits_for_pillow(tmp_path: Path) -> None:
    report, lines = profiled("loader-without-workers", tmp_path)
    pictures = [line for line in report["lines"] if line["function"] == "Digits.__getitem__"]
    assert sum(line["idle_ms"] for line in pictures) > 0
    assert lines["h = torch.relu(self.bn1(self.conv1(x)))"]["backward_ms"] > 0
    assert "for images, labels in loader:" in lines


def test_bert_spends_it_in_matrix_products(tmp_path: Path) -> None:
    report, lines = profiled("fp32-bert", tmp_path)
    up_and_down = lines["h = self.down(F.gelu(self.up(x)))"]
    assert {"aten::addmm", "aten::gelu"} <= {op["name"] for op in up_and_down["ops"]}
    assert up_and_down["backward_ms"] > 0
    assert report["attributed"]["device_percent"] >= 99


def test_the_transpose_is_hot_in_forward_and_backward(tmp_path: Path) -> None:
    report, lines = profiled("transpose-kernel", tmp_path)
    hot = lines["target[:, row] = x[row]"]
    assert hot["device_ms"] == max(line["device_ms"] for line in report["lines"])
    assert "aten::copy_" in {op["name"] for op in hot["ops"]}


def test_the_layer_norm_written_out_is_found(tmp_path: Path) -> None:
    report, lines = profiled("layernorm-finetune", tmp_path)
    assert "aten::sqrt" in {op["name"] for op in lines["x = (x - u) / torch.sqrt(s + self.eps)"]["ops"]}
    left_out = [note for note in report["notes"] if "hand-written-norm" in note]  # it gains little on a CPU
    assert "hand-written-norm" in rules(report) or left_out


def test_the_quickstart_has_findings(example_run: ExampleRun) -> None:
    assert "loader-without-workers" in {finding.rule for finding in example_run.report.findings}
