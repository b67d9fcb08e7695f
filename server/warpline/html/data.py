"""The data of the page's script as one block of text: the JSON report and the data that is not in it."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from warpline.html import ranks
from warpline.model.kernel_name import readable
from warpline.model.profile import Profile
from warpline.model.ranks import Rank
from warpline.model.report import KernelUse, OpUse, Report
from warpline.model.tracks import Timeline


def block(
    report: Report,
    profile: Profile,
    timeline: Timeline | None,
    roofs: Mapping[str, float],
    names: Mapping[str, str],
    beside: Sequence[Rank],
) -> str:
    """Base64 of gzipped JSON: nothing in it can end the element that it is in."""
    kernels_of_none = [
        KernelUse(one.name, one.phase, one.count, one.device_ms) for one in profile.unattributed_kernels
    ]
    ops_of_none = [
        OpUse(one.name, one.phase, one.count, one.device_ms, one.shapes) for one in profile.unattributed_ops
    ]
    kernels = {use.name for line in report.lines for use in line.kernels}
    kernels |= {use.name for use in kernels_of_none}
    files = {line.file for line in report.lines} | {finding.file for finding in report.findings}
    if timeline is not None:
        files |= {file for file, _ in timeline.lines}
    files |= {line.file for rank in beside for line in rank.report.lines}
    if report.workers is not None:
        files |= {line.file for line in report.workers.lines}
    shown: dict[str, Any] = {
        "report": report,
        "rest": {"kernels": kernels_of_none, "ops": ops_of_none},  # what no line was found for
        "timeline": timeline,
        "names": {file: names.get(file, file) for file in sorted(files)},
        "sources": {file: profile.sources[file] for file in sorted(files & profile.sources.keys())},
        "kernels": {name: readable(name) for name in sorted(kernels)},
        "roofs": roofs,
        "ranks": ranks.data(beside),
        "peak_bytes": profile.totals.get("peak_bytes", 0.0),
    }
    # Without a time in its head, so that the same run gives the same page.
    packed = gzip.compress(msgspec.json.encode(shown), 9, mtime=0)
    return base64.b64encode(packed).decode("ascii")
