"""Float64 that a setting asks for: the finding and the edit stand there."""

from __future__ import annotations

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply

HEAD = """\
import argparse
from dataclasses import dataclass, replace
import numpy as np
import torch

"""
CLASS = """\
@dataclass
class Grid:
    lats: int = 64
    precision: type = np.float64

grid = Grid()
"""
LOOP = """\
for step in range(100):
    y = x @ x
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[64,64],[64,64]]
"""
CAST = "x = torch.from_numpy(np.asarray(raw, dtype=grid.precision)).cuda()\n"


def drafted(script: str, **others: str) -> tuple[dict[str, str], Draft]:
    project = read_project(
        {"/project/train.py": script, **{f"/project/{name}.py": text for name, text in others.items()}}
    )
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(project.profile, project.texts.get))
    return project.texts, draft


@pytest.mark.parametrize(
    ("made", "setting", "words"),
    [
        (CLASS + CAST, "precision: type = np.float64", "`Grid.precision`"),
        (
            CLASS + "flat = raw.astype(grid.precision)\nx = torch.as_tensor(flat).cuda()\n",
            "precision: type = np.float64", "`Grid.precision`",
        ),
        (CLASS.replace("np.float64", '"float64"') + CAST, 'precision: type = "float64"', "`Grid.precision`"),
        (
            CLASS.replace("np.float64", '"double"')
            + "x = torch.rand(64, 64, dtype=getattr(torch, grid.precision))\n",
            'precision: type = "double"', "`Grid.precision`",
        ),
        (
            CLASS.replace("np.float64", '"double"')
            + 'options = {"dtype": getattr(torch, grid.precision)}\nx = torch.rand(64, 64, **options)\n',
            'precision: type = "double"', "`Grid.precision`",
        ),
        (
            CLASS.replace("np.float64", '"float64"')
            + "class Solver:\n    def __init__(self, grid):\n"
            "        self.kw = dict(dtype=getattr(torch, grid.precision), device='cuda')\n"
            "    def start(self):\n        return torch.rand(64, 64, **self.kw)\nx = Solver(grid).start()\n",
            'precision: type = "float64"', "`Grid.precision`",
        ),
        (
            'TYPES = {"float32": torch.float32, "float64": torch.float64}\n'
            'options = argparse.ArgumentParser()\noptions.add_argument("--dtype", default="float64")\n'
            "args = options.parse_args()\nx = torch.rand(64, 64).to(TYPES[args.dtype])\n",
            'default="float64"', "the option `--dtype`",
        ),
        (
            'config = {"size": 64, "dtype": np.float64}\n'
            'x = torch.from_numpy(raw.astype(config["dtype"]))\n',
            '"dtype": np.float64', "`config[\"dtype\"]`",
        ),
        ("KIND = np.double\nx = torch.from_numpy(raw.astype(KIND))\n", "KIND = np.double", "`KIND`"),
        (
            "def table(raw, dtype=np.float64):\n    return torch.from_numpy(np.array(raw, dtype)).cuda()\n"
            "x = table(raw)\n",
            "dtype=np.float64", "`dtype`",
        ),
        (
            "class Table:\n    kind = np.float64\n    def read(self, raw):\n"
            "        return torch.from_numpy(raw.astype(self.kind)).cuda()\nx = Table().read(raw)\n",
            "kind = np.float64", "`np.float64`",
        ),
    ],
)  # fmt: skip
def test_the_setting_is_found_and_edited(made: str, setting: str, words: str) -> None:
    texts, draft = drafted(HEAD + made + LOOP)
    (text,) = texts.values()
    line = next(at for at, one in enumerate(text.splitlines(), 1) if setting in one)
    assert draft.line == line
    assert words in draft.message
    (fix,) = draft.fixes
    other = setting.replace("float64", "float32").replace("double", "float32")
    assert apply(text, fix.edits) == text.replace(setting, other)


def test_arrays_to_which_a_setting_gives_another_type_are_left_alone() -> None:
    labels = "labels = torch.from_numpy(np.asarray(kinds, dtype=grid.kind))\n"
    _, draft = drafted(
        HEAD + CLASS.replace("precision", "kind: type = np.int64\n    precision") + labels + CAST + LOOP
    )
    (fix,) = draft.fixes
    assert [edit.text for edit in fix.edits] == ["32"]


def test_a_setting_of_another_file_is_edited_with_what_is_written_beside_it() -> None:
    made = "from settings import Grid\ngrid = Grid()\nmodel = Net().double()\n" + CAST
    texts, draft = drafted(
        HEAD + made + LOOP, settings="import numpy as np\nclass Grid:\n    precision = np.float64\n"
    )
    assert (draft.file, draft.line) == ("/project/settings.py", 3)
    (fix,) = draft.fixes
    changed = {
        file: apply(text, [edit for edit in fix.edits if edit.file == file]) for file, text in texts.items()
    }
    assert changed["/project/settings.py"].endswith("precision = np.float32\n")
    assert "Net().float()" in changed["/project/train.py"]
    assert CAST in changed["/project/train.py"]


@pytest.mark.parametrize(
    "made",
    [
        # Something else may set it.
        CLASS.replace("Grid()", "Grid(precision=kind)") + CAST,
        CLASS.replace("Grid()", "Grid(64, kind)") + CAST,
        CLASS.replace("Grid()", "Grid(**given)") + CAST,
        CLASS + "grid = replace(grid, precision=kind)\n" + CAST,
        CLASS + "grid.precision = kind\n" + CAST,
        CLASS + "for name, value in given.items():\n    setattr(grid, name, value)\n" + CAST,
        CLASS + "@dataclass\nclass Other:\n    precision: type = np.float32\n" + CAST,
        'config = {"dtype": np.float64}\nconfig["dtype"] = kind\n'
        'x = torch.from_numpy(raw.astype(config["dtype"]))\n',
        'config = {"dtype": np.float64}\nconfig.update(given)\n'
        'x = torch.from_numpy(raw.astype(config["dtype"]))\n',
        "def table(raw, dtype=np.float64):\n    return torch.from_numpy(np.array(raw, dtype)).cuda()\n"
        "x = table(raw, **given)\n",
        "KIND = np.float64\nif small:\n    KIND = np.float32\nx = torch.from_numpy(raw.astype(KIND))\n",
        # It makes other arrays.
        CLASS + "shown = raw.astype(grid.precision)\nx = torch.from_numpy(raw).cuda()\n",
        # The array is float64 whatever the setting is.
        CLASS + "x = torch.from_numpy(raw.astype(grid.precision) * scales).cuda()\n",
    ],
)  # fmt: skip
def test_what_may_have_another_value_is_no_setting(made: str) -> None:
    texts, draft = drafted(HEAD + made + LOOP)
    (text,) = texts.values()
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "torch.from_numpy" in one)
    assert draft.line == line
    assert "comes from" not in draft.message
