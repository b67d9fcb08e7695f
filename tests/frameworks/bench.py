"""A script with a real framework: its run, the settings that can be made in it, and what it does then."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conftest import environment, warpline
from tests.frameworks.installed import PYTHON
from warpline import pipeline
from warpline.diagnosis.rebase import rebase
from warpline.model.profile import Profile
from warpline.rulekit import Context, Refused
from warpline.rulekit.framework_settings import setting_fix
from warpline.rulekit.frameworks import applies
from warpline.text.edits import apply
from warpline.wire.frameworks import Construction, Setting, constructions
from warpline.wire.sites import Framework, facts_of

SCRIPTS = Path(__file__).parent / "scripts"
#: No test may wait for a hub.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Bench:
    folder: Path
    script: Path
    profile: Profile  # on a device that has bfloat16

    def construction(self, key: str) -> Construction:
        return next(one for one in constructions() if one.key == key)

    def edited(self, key: str, *rules: str) -> str:
        """The script with the first setting for each of ``rules`` that can be made. Raises Refused."""
        text = self.script.read_text()
        for rule in rules:
            text = self._with(text, self.construction(key), rule)
        return text

    def _with(self, text: str, one: Construction, rule: str) -> str:
        texts = {str(self.script): text}
        context = Context(rebase(self.profile, texts.get), texts.get)
        reasons = []
        for site in context.sites("framework"):
            if facts_of(Framework, site).construction != one.key:
                continue
            for setting in self.settings(one, rule):
                if not applies(context, site, setting):
                    continue
                try:
                    fix = setting_fix(context, site, one, setting, workers=2)
                except Refused as reason:
                    reasons.append(str(reason))
                    continue
                assert context.reached.refusal(fix, context.source) is None
                return apply(text, fix.edits)
        raise Refused("; ".join(reasons) or f"no setting of {one.key} for {rule}")

    def settings(self, one: Construction, rule: str) -> list[Setting]:
        return [setting for setting in one.settings if setting.rule == rule]

    def effects(self, text: str | None = None) -> Mapping[str, Any]:
        """What the script does (scripts/effects.py), as it is or with another text."""
        script = self.script
        if text is not None:
            script = self.folder / "edited.py"
            script.write_text(text)
        done = subprocess.run(
            [PYTHON, SCRIPTS / "effects.py", script],
            cwd=self.folder,
            env=environment(**OFFLINE),
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def profiled(name: str, folder: Path) -> Bench:
    """``warpline profile`` of one of the scripts in ``folder``."""
    script = folder / f"{name}.py"
    shutil.copy(SCRIPTS / script.name, script)
    done = warpline("profile", "--python", PYTHON, "--steps", "3", script.name, cwd=folder, **OFFLINE)
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = (path.parent for path in (folder / ".warpline/runs").glob("*/manifest.json"))
    profile = pipeline.profile_of(run)
    device = replace(profile.manifest.device, bf16=True)
    return Bench(folder, script, replace(profile, manifest=replace(profile.manifest, device=device)))
