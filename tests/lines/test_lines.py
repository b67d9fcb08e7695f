"""Lines are proved and not trusted: every op of every claimed line, on every interpreter.

The scripts lie in a folder with a space and non-ASCII letters in its name; two of their files have
the same name. Interpreters: ``WARPLINE_TEST_PYTHONS`` (separated by colons), else this one. Each runs them
twice: as they are, and with line events left out wherever no operator was seen to begin, which else only
happens to loops of plain Python that run hundreds of times a step.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lines.proof import Claim, Verdict, claims, verdict
from warpline import attribution, runs, trace
from warpline.attribution.attribute import LEAST_MS
from warpline.capture import process
from warpline.capture.launch import capture
from warpline.model.profile import Profile
from warpline.wire.run import Locations, Request

SCRIPTS = Path(__file__).parent / "scripts"
PYTHONS = os.environ.get("WARPLINE_TEST_PYTHONS", sys.executable).split(os.pathsep)
OTHER_THREADS = "workers.py"

#: Lines are proved on all of torch, as a user has it.
pytestmark = pytest.mark.usefixtures("whole_torch")


@dataclass(frozen=True)
class Proof:
    folder: Path
    profile: Profile
    verdict: Verdict


def sparing(folder: Path) -> Path:
    """The runner, which takes each line on which no operator began for one that is worth leaving out."""
    runner, ours = folder / "warpline/capture/runner", process.BOOT.parents[2]
    for copied in ("capture/runner", "wire"):
        shutil.copytree(
            ours / copied, folder / "warpline" / copied, ignore=shutil.ignore_patterns("__pycache__")
        )
    rules = runner / "lines/loops.py"
    text = rules.read_text(encoding="utf-8")
    for name, value in (("OFTEN", "1"), ("QUICK_NS", "10**9"), ("WORTH", "-1")):
        text, times = re.subn(rf"^{name} = \S+", f"{name} = {value}", text, flags=re.MULTILINE)
        assert times == 1
    rules.write_text(text, encoding="utf-8")
    return runner / "boot.py"


@pytest.fixture(
    scope="module",
    params=[(python, spare) for python in PYTHONS for spare in (False, True)],
    ids=lambda param: f"{param[0]}{', sparing' * param[1]}",
)
def proof(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    python, spare = request.param
    folder = tmp_path_factory.mktemp("proof") / "zwei Wörter"
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        if spare:
            patch.setattr(process, "BOOT", sparing(folder.parent))
        run = capture(
            Request(
                target=str(folder / "train.py"),
                python=python,
                cwd=str(folder.parent),
                steps=2,
                warmup=1,
                environment={"OMP_NUM_THREADS": "1"},
            ),
            folder.parent / "run",
        )
    left_out = runs.read(run, "locations.json", Locations).estimated
    assert bool(left_out) is spare
    return Proof(folder, attribution.attribute(trace.read(run)), verdict(run, folder))


def records_all_threads(profile: Profile) -> bool:
    """torch before 2.7 records the operators of one thread only, and the report says so."""
    major, minor = profile.manifest.torch_version.split(".")[:2]
    return (int(major), int(minor)) >= (2, 7)


def shown(found: dict[Claim, list[str]]) -> str:
    return "\n".join(f"{claim}: {len(where)}, at {sorted(set(where))[:4]}" for claim, where in found.items())


def test_every_claim_is_met_by_an_op(proof: Proof) -> None:
    unmet = [claim for claim, count in proof.verdict.met.items() if not count]
    if not records_all_threads(proof.profile):
        unmet = [claim for claim in unmet if Path(claim.file).name != OTHER_THREADS]
        assert any("recorded no operators there" in note for note in proof.profile.notes)
    assert not unmet, "\n".join(map(str, unmet))


def test_every_op_of_a_claimed_line_lies_on_it(proof: Proof) -> None:
    assert sum(proof.verdict.met.values()) > 1000
    assert not proof.verdict.missed, shown(proof.verdict.missed)


@pytest.mark.parametrize("phase", ["forward", "backward", "recompute"])
def test_phases_are_told_apart(proof: Proof, phase: str) -> None:
    of_phase = {"forward": 0, "backward": 1, "recompute": 2}[phase]
    assert any(count for claim, count in proof.verdict.met.items() if claim.phase == of_phase)


def test_lines_and_the_unattributed_rest_make_the_step(proof: Proof) -> None:
    profile = proof.profile
    total = sum(cost.step_ms for cost in profile.lines) + profile.unattributed.step_ms
    # Lines of less than LEAST_MS have no row.
    left_out = LEAST_MS * sum(len(text.splitlines()) for text in profile.sources.values())
    assert total == pytest.approx(profile.steps.step_ms, rel=1e-9, abs=left_out)
    assert profile.attributed.device_percent > 99


def test_two_files_of_one_name_are_two_files(proof: Proof) -> None:
    layers = {cost.file for cost in proof.profile.lines if Path(cost.file).name == "layers.py"}
    assert layers == {str(proof.folder / "a" / "layers.py"), str(proof.folder / "b" / "layers.py")}


def test_every_line_has_the_text_it_had(proof: Proof) -> None:
    for cost in proof.profile.lines:
        assert proof.profile.sources[cost.file].splitlines()[cost.line - 1].strip()


def test_no_op_is_claimed_by_two_lines() -> None:
    """The scripts themselves: a claim proves something only while no other line makes it too."""
    seen: dict[tuple[str, int], Claim] = {}
    for claim in claims(SCRIPTS):
        other = seen.setdefault((claim.op, claim.phase), claim)
        assert other == claim, f"{claim} and {other}"
