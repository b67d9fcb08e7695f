"""What CONTRIBUTING.md says is to be written for a rule, an LSP method, a device, a trace format and a
framework: each is added to a copy of the sources, works there, and its files are counted."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment

#: The most files that each may need.
MOST = {"a rule": 2, "an LSP method": 3, "a kind of device": 2, "a trace format": 2, "a framework": 1}

RULE = (ROOT / "server/warpline/rules/memory_headroom.py").read_text(encoding="utf-8")
METHOD = '''"""warpline/example: how many lines a text has."""

from __future__ import annotations

from typing import Any

from warpline.lsp.server import Server
from warpline.view.example import words


def example(ls: Server, params: Any) -> str:
    """The answer to a request."""
    return words(params["text"])
'''
VIEW = '''"""A text in words."""


def words(text: str) -> str:
    """How many lines it has."""
    return f"{len(text.splitlines())} lines"
'''
DEVICE = '''"""A device that does not exist."""

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset({"line costs", "kernels"})
'''
RUNNER = '''"""The same, in the runner."""

from ..kind import Host


class Device(Host):
    name = "npu"
    accelerated = True
'''
FORMAT = '''"""Traces of one operator a line: its name, its start and its length in microseconds."""

from pathlib import Path

from warpline.trace.exported import Export

ENDINGS = (".lines",)
CONVERT: dict[str, str] = {}


def is_export(path: Path) -> bool:
    return path.suffix in ENDINGS


def read(path: Path) -> Export:
    rows = (line.split() for line in path.read_text().splitlines())
    return Export(
        events=[
            {"ph": "X", "cat": "cpu_op", "name": name, "ts": int(ts), "dur": int(us), "pid": 1, "tid": 1}
            for name, ts, us in rows
        ],
        notes=["read from lines"],
    )
'''
FRAMEWORK = '''"""A trainer."""

from . import Construction, Setting

CONSTRUCTIONS = (
    Construction("example", "Trainer", ("example",), (Setting("sync-in-step", {"log": "50"}, "Log less"),)),
)
'''
SOURCES = "server/warpline"
#: By what is added: text of new files, and ``(before, after)`` for those that have to be changed.
ADDED: dict[str, dict[str, str | tuple[str, str]]] = {
    "a rule": {
        f"{SOURCES}/rules/example_rule.py": RULE.replace("class MemoryHeadroom", "class ExampleRule"),
        "docs/rules.md": "(written by `warpline rules --markdown`)",
    },
    "an LSP method": {
        f"{SOURCES}/lsp/methods/example.py": METHOD,
        f"{SOURCES}/lsp/methods/registry.py": (
            "METHODS = (\n",
            'METHODS = (\n    Method("warpline/example", "example", "example"),\n',
        ),
        f"{SOURCES}/view/example.py": VIEW,
    },
    "a kind of device": {
        f"{SOURCES}/devices/npu.py": DEVICE,
        f"{SOURCES}/capture/runner/device/kinds/npu.py": RUNNER,
    },
    "a trace format": {
        f"{SOURCES}/trace/example.py": FORMAT,
        f"{SOURCES}/trace/foreign.py": (
            "FORMATS: tuple[Format, ...] = (nsys,)",
            "from warpline.trace import example\nFORMATS: tuple[Format, ...] = (nsys, example)",
        ),
    },
    "a framework": {f"{SOURCES}/wire/frameworks/example.py": FRAMEWORK},
}
#: Run in the copy: each addition does what it is for.
WORKS = {
    "a rule": """
from warpline import rules
from warpline.diagnosis import catalogue
assert rules.rule_named("example-rule").area == "memory"
assert rules.page("example-rule").summary == "The device's memory is nearly full."
assert "| `example-rule` |" in catalogue.as_markdown()
""",
    "an LSP method": """
from warpline.lsp.methods import registry
(method,) = [one for one in registry.METHODS if one.name == "warpline/example"]
assert registry._function(method)(None, {"text": "a\\nb"}) == "2 lines"
""",
    "a kind of device": """
from warpline.capture.runner.device import kinds
from warpline.devices import can
assert can("npu", "kernels") and not can("npu", "cudnn")
class Torch:
    class version: hip = None
    class cuda: is_initialized = staticmethod(lambda: False)
    class backends:
        class mps: is_available = staticmethod(lambda: False)
assert kinds.used(Torch).name == "npu"
""",
    "a trace format": """
from pathlib import Path
from warpline.trace import foreign
Path("trace.lines").write_text("aten::mm 10 5\\naten::add 20 1\\n")
read = foreign.import_run(Path("trace.lines"), Path("run"))
assert [read.names[at] for at in read.host.name] == ["aten::mm", "aten::add"]
assert "read from lines" in read.manifest.notes
""",
    "a framework": """
from warpline.wire import frameworks
assert "example.Trainer" in [one.key for one in frameworks.constructions()]
""",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with everything added."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / SOURCES, home / SOURCES, ignore=shutil.ignore_patterns("__pycache__"))
    for files in ADDED.values():
        for path, text in files.items():
            place = home / path
            if isinstance(text, tuple):
                before, after = text
                text = place.read_text(encoding="utf-8")
                assert text.count(before) == 1, path
                text = text.replace(before, after)
            else:
                assert not place.exists(), path
                place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    return home


@pytest.mark.process
def test_what_is_added_works(copy: Path) -> None:
    script = "\n".join(WORKS.values())
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=copy,
        env=environment(PYTHONPATH=str(copy / "server")),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_no_more_files_than_that() -> None:
    assert {name: len(files) for name, files in ADDED.items()} == MOST


def test_the_page_says_the_same() -> None:
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    counted = re.search(r"Files to touch: (.*?)\.", page)
    assert counted is not None
    assert {name: int(count) for name, count in re.findall(r"(an? [\w ]+?) (\d)", counted[1])} == MOST
