"""``ncu``, played by a shell script, and its Python module by a small one with the same names.

The real pair is for ``tests/gpu``, and what it answered there for ``tests/trace/test_nsight.py``.
"""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT

TRANSPOSE = ROOT / "examples/transpose-kernel/slow.py"
STORE = next(n for n, text in enumerate(TRANSPOSE.read_text().splitlines(), 1) if "tl.store" in text)

MODULE = f'''
"""Stands in for NVIDIA's ncu_report: one launch, a load line that is fine and a store line that is not."""

LINES = {{100: {STORE - 1}, 104: {STORE}, 108: {STORE}}}
VALUES = {{
    "memory_l2_theoretical_sectors_global": {{100: 8.0, 104: 32.0, 108: 32.0}},
    "memory_l2_theoretical_sectors_global_ideal": {{100: 8.0, 104: 4.0, 108: 4.0}},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {{100: 25.0, 104: 75.0}},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": {{100: 20.0}},
    "gpu__time_duration.sum": 250000.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 6.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 93.0,
}}


class Source:
    def __init__(self, line):
        self.number = line

    def file_name(self):
        return {str(TRANSPOSE)!r}

    def line(self):
        return self.number


class Metric:
    def __init__(self, value):
        self.by_address = value if isinstance(value, dict) else {{}}
        self.value = value

    def has_correlation_ids(self):
        return bool(self.by_address)

    def correlation_ids(self):
        return Metric(dict(enumerate(self.by_address)))

    def num_instances(self):
        return len(self.by_address)

    def as_uint64(self, index):
        return int(self.as_double(index))

    def as_double(self, index=None):
        return self.value if index is None else list(self.by_address.values())[index]


class Action:
    def name(self):
        return "transpose_rows"

    def metric_names(self):
        return list(VALUES)

    def metric_by_name(self, name):
        return Metric(VALUES[name]) if name in VALUES else None

    def source_info(self, address):
        return Source(LINES[address])

    def rule_results_as_dicts(self):
        return [{{"name": "Uncoalesced", "rule_message": {{"message": "store wider"}}}}, {{"name": "Quiet"}}]


class Range:
    def num_actions(self):
        return 1

    def action_by_idx(self, index):
        return Action()


class Context:
    def num_ranges(self):
        return 1

    def range_by_idx(self, index):
        return Range()


def load_report(path):
    if not open(path).read().startswith("report"):
        raise RuntimeError("not a report")
    return Context()
'''


#: Writes the report to where --export says.
COLLECTS = """
while [ $# -gt 0 ]; do
  [ "$1" = --export ] && echo report > "$2"
  shift
done
"""


def fake_ncu(folder: Path, script: str) -> Path:
    ncu = folder / "ncu"
    ncu.write_text(f"#!/bin/sh\n{script}\n")
    ncu.chmod(0o755)
    (folder / "extras/python").mkdir(parents=True)
    (folder / "extras/python/ncu_report.py").write_text(MODULE)
    return ncu
