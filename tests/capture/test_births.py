"""The record names the line that holds each argument of a loader, an optimizer and a module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline.wire.births import Holder
from warpline.wire.run import Site

COMMON = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, at):
        return torch.full((8,), float(at % 7)), at % 4

def train(loader, model, optimizer):
    while True:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

class Sizes:
    codes = 3
    @property
    def classes(self):
        return self.codes + 1

sizes = Sizes()
"""
#: Each is built through ``**kwargs``, three files from where its values stand; a comment says what they are.
BUILD = """\
from torch import nn, optim
from torch.utils.data import DataLoader

def build(kind, section, *first):
    kwargs = section if isinstance(section, dict) else vars(section)
    return {"loader": DataLoader, "optimizer": optim.SGD, "module": nn.Linear}[kind](*first, **kwargs)
"""
MAIN = """\
from common import Numbers, train
from build import build
from config import loader, optimizer, module

model = build("module", module)
train(build("loader", loader, Numbers()), model, build("optimizer", optimizer, model.parameters()))
"""
STYLES = {
    "dataclass": {
        "config.py": """\
from dataclasses import dataclass

@dataclass
class Loader:
    batch_size: int = 16  # loader.batch_size
    num_workers: int = 0  # loader.num_workers

@dataclass
class Optimizer:
    lr: float = 1.0
    momentum: float = 0.9  # optimizer.momentum

@dataclass
class Module:
    in_features: int = 8
    out_features: int = 4
    bias: bool = False  # module.bias

loader, module = Loader(), Module()
optimizer = Optimizer(lr=0.1)  # optimizer.lr
""",
    },
    "dict": {
        "config.py": """\
import sys
loader = {"batch_size": 8, "num_workers": 3}
if sys.platform == "nowhere":
    loader["num_workers"] = 7
else:
    loader["num_workers"] = 0  # loader.num_workers
loader.update(batch_size=16)  # loader.batch_size
optimizer = dict(lr=0.5, momentum=0.1)
optimizer.update({
    "lr": 0.1,  # optimizer.lr
    "momentum": 0.9,  # optimizer.momentum
})
module = {"in_features": 8, "out_features": 4} | {"bias": False}  # module.bias
""",
    },
    "argparse": {
        "config.py": """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)  # loader.batch_size
parser.add_argument("--num-workers", type=int,
                    default=0)  # loader.num_workers
loader = parser.parse_args([])
parser = argparse.ArgumentParser()
parser.add_argument("--lr", default=0.1)  # optimizer.lr
parser.add_argument("--momentum", default=0.9)  # optimizer.momentum
optimizer = parser.parse_args([])
parser = argparse.ArgumentParser()
parser.add_argument("--bias", action="store_true")  # module.bias
module = parser.parse_args([])
module.in_features, module.out_features = 8, 4
""",
    },
    "defaults of a parser": {
        "config.py": """\
import argparse

parser = argparse.ArgumentParser()
parser.set_defaults(batch_size=64)
parser.add_argument("--batch-size", type=int, default=16)  # loader.batch_size
parser.add_argument("--num-workers", type=int, default=2)
parser.set_defaults(num_workers=0)  # loader.num_workers
loader = parser.parse_args([])
parser = argparse.ArgumentParser()
parser.set_defaults(
    lr=0.1,  # optimizer.lr
    momentum=0.9)  # optimizer.momentum
group = parser.add_argument_group("rates")
group.add_argument("--lr", type=float)
group.add_argument("--momentum", type=float)
optimizer = parser.parse_args([])
parser = argparse.ArgumentParser()
parser.add_argument("--bias", action="store_true")
parser.add_argument("--no-bias", action="store_false", dest="bias")
parser.set_defaults(bias=False)  # module.bias
module = parser.parse_args([])
module.in_features, module.out_features = 8, 4
""",
    },
    "yaml": {
        "settings.yaml": """\
data:
  loader: {batch_size: 16, num_workers: 0}  # loader.batch_size loader.num_workers
optimizer:
  lr: 0.1  # optimizer.lr
  momentum: 0.9  # optimizer.momentum
model:
  - in_features: 8
    out_features: 4
    bias: false  # module.bias
""",
        "config.py": """\
import pathlib
import yaml

with open(pathlib.Path(__file__).with_name("settings.yaml")) as stream:
    settings = yaml.safe_load(stream)
loader, optimizer, module = settings["data"]["loader"], settings["optimizer"], settings["model"][0]
""",
    },
    "json": {
        "settings.json": """\
{"loader": {"batch_size": 16,
            "num_workers": 0},
 "optimizer": {"lr": 0.1, "momentum": 0.9},
 "module": [{"in_features": 8, "out_features": 4, "bias": false}]}
""",
        "config.py": """\
import json, pathlib

settings = json.loads(pathlib.Path(__file__).with_name("settings.json").read_text())
loader, optimizer, module = settings["loader"], settings["optimizer"], settings["module"][0]
""",
        "expected": """\
settings.json:1 loader.batch_size
settings.json:2 loader.num_workers
settings.json:3 optimizer.lr
settings.json:3 optimizer.momentum
settings.json:4 module.bias
""",
    },
    "text that the script reads": {
        "config.py": """\
from types import SimpleNamespace

def read(text):
    lines = (line.split("#")[0].split(":") for line in text.strip().splitlines())
    return {name.strip(): eval(value) for name, value in lines}

SECTIONS = ('''
batch_size: 16  # loader.batch_size
num_workers: 0  # loader.num_workers
''', '''lr: 0.1  # optimizer.lr
momentum: 0.9  # optimizer.momentum
''')
OTHER = '''
batch_size: 16
epochs: 9
'''
loader, optimizer = map(read, SECTIONS)
optimizer = SimpleNamespace(**optimizer)
other = read(OTHER)
module = read('''
in_features: 8
out_features: 4
bias: False  # module.bias
''')
"""
    },
    "JSON in the script": {
        "config.py": """\
import json

settings = json.loads('''
{"loader": {"batch_size": 16,
            "num_workers": 0},
 "optimizer": {"lr": 0.1, "momentum": 0.9}, "module":
    {"in_features": 8, "out_features": 4, "bias": false}}
''')
loader, optimizer, module = settings["loader"], settings["optimizer"], settings["module"]
""",
        "expected": """\
config.py:4 loader.batch_size
config.py:5 loader.num_workers
config.py:6 optimizer.lr
config.py:6 optimizer.momentum
config.py:7 module.bias
""",
    },
}


def _expected(files: dict[str, str]) -> dict[str, tuple[str, int]]:
    found = {}
    for name, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            for word in re.findall(r"\b(?:loader|optimizer|module)\.\w+", line.partition("#")[2]):
                found[word] = name, number
    for line in files.get("expected", "").splitlines():
        place, word = line.split()
        found[word] = place.split(":")[0], int(place.split(":")[1])
    return found


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _holders(captured: Captured) -> dict[str, Holder]:
    return {
        f"{site.kind}.{argument.name}": argument.holder
        for site in captured.facts.sites
        for argument in site.arguments
        if argument.holder is not None
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("style", STYLES)
def test_the_line_that_holds_a_value(tmp_path: Path, style: str, python: str) -> None:
    files = {"common.py": COMMON, "build.py": BUILD, "main.py": MAIN, **STYLES[style]}
    _write(tmp_path, files)
    captured = Captured(request(tmp_path / "main.py", python), tmp_path)
    found = {key: (Path(one.file).name, one.line) for key, one in _holders(captured).items()}
    expected = _expected(STYLES[style])
    assert len(expected) == 5
    assert {key: found.get(key) for key in expected} == expected


SETTINGS = """\
import os
os.environ["OMP_NUM_THREADS"] = "2"
import torch
from common import Numbers, train, DataLoader, nn, sizes

def configure():
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True

configure()
torch.set_num_threads(1)
if torch.cuda.is_available() and False:
    model = nn.Linear(8, 4, bias=False)
model = nn.Linear(8, sizes.classes)
try:
    train(DataLoader(Numbers(), 16), model, torch.optim.SGD(model.parameters(), lr=0.1))
finally:
    print("after")
model = nn.Linear(8, 4)
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("settings")
    _write(folder, {"common.py": COMMON, "main.py": SETTINGS})
    return Captured(request(folder / "main.py"), folder)


def test_who_sets_a_flag(settings: Captured) -> None:
    made = {one.name: (one.value, [frame.line for frame in one.frames]) for one in settings.facts.settings}
    assert made["float32_matmul_precision"] == ("high", [7, 11])
    assert made["torch.backends.cudnn.benchmark"] == (True, [8, 11])
    assert made["torch.backends.cuda.matmul.allow_tf32"] == (True, [9, 11])
    assert made["num_threads"] == (1, [12])
    assert made["os.environ[OMP_NUM_THREADS]"] == ("2", [2])


def test_lines_that_ran_before_the_steps(settings: Captured) -> None:
    executed = settings.facts.executed
    assert executed.complete, executed.why
    main = next(lines for file, lines in executed.lines.items() if file.endswith("main.py"))
    common = next(lines for file, lines in executed.lines.items() if file.endswith("common.py"))
    assert {2, 7, 13, 15, 17} <= set(main)
    assert not {14, 19, 20} & set(main)  # a branch not taken; what comes after the steps
    assert {9, 14, 17} <= set(common)
    assert main.index(11) < main.index(7) < main.index(12)


def test_frames_of_a_birth(settings: Captured) -> None:
    sites: dict[str, Site] = {site.kind: site for site in settings.facts.sites}
    assert [frame.line for frame in sites["loader"].frames] == [17]
    lr = next(one for one in sites["optimizer"].arguments if one.name == "lr")
    assert (lr.value, lr.passed) == (0.1, True)
    assert lr.holder is not None and (lr.holder.kind, lr.holder.column) == ("call", 83)
    workers = next(one for one in sites["loader"].arguments if one.name == "num_workers")
    assert (workers.value, workers.passed, workers.holder) == (0, False, None)


OWN = (
    COMMON
    + """
class Head(nn.Module):
    def __init__(self, width, lean):
        super().__init__()
        self.lean, self.layer = lean, nn.Linear(8, width)

    def forward(self, x):
        return self.layer(x)

PRESET = dict(width=4, lean=True)
model = Head(**PRESET)
train(DataLoader(Numbers(), 64), model, torch.optim.SGD(model.parameters(), 0.1))
"""
)


def test_arguments_of_a_module_of_the_user_s_own_class(tmp_path: Path) -> None:
    sites = Captured(request(write(tmp_path, OWN)), tmp_path).facts.sites
    own = next(site for site in sites if str(site.facts.get("type")).endswith("Head"))
    values = {
        one.name: (one.value, one.holder and (one.holder.kind, one.holder.line)) for one in own.arguments
    }
    line = OWN.split("\n").index("PRESET = dict(width=4, lean=True)") + 1
    assert values == {"width": (4, ("entry", line)), "lean": (True, ("entry", line))}


@pytest.mark.parametrize(
    "made", ["(Head(4, plan.lean) for _ in (1, 2))", "[Head(4, plan.lean) for _ in (1, 2)]"]
)
def test_modules_that_a_comprehension_makes(tmp_path: Path, made: str) -> None:
    """It has a frame of its own, and a generator's is called by torch."""
    before, _, after = OWN.partition("PRESET")
    text = f"""{before}
def build(plan):
    return nn.Sequential(nn.ModuleList({made})[0])

from argparse import ArgumentParser
parser = ArgumentParser()
parser.add_argument("--lean", type=bool, default=True)
model = build(parser.parse_args())
{after.partition(chr(10))[2].partition(chr(10))[2]}"""
    sites = Captured(request(write(tmp_path, text)), tmp_path).facts.sites
    own = next(site for site in sites if str(site.facts.get("type")).endswith("Head"))
    (lean,) = (one for one in own.arguments if one.name == "lean")
    assert lean.holder is not None
    line = next(at for at, one in enumerate(text.split("\n"), 1) if "add_argument" in one)
    assert (lean.holder.kind, lean.holder.line, lean.value) == ("option", line, True)


def test_the_option_that_is_passed_of_two_that_share_a_name(tmp_path: Path) -> None:
    text = f"""{OWN.partition("PRESET")[0]}
from argparse import ArgumentParser
parser = ArgumentParser()
parser.add_argument("--lean", action="store_true")
parser.add_argument("--full", action="store_false", dest="lean")
parser.set_defaults(lean=True)
plan = parser.parse_args()
model = Head(4, plan.lean)
{OWN.rstrip().rpartition(chr(10))[2]}"""
    given = request(write(tmp_path, text), argv=("--lean",))
    own = next(site for site in Captured(given, tmp_path).facts.sites if site.kind == "module")
    (lean,) = (one for one in own.arguments if one.name == "lean")
    assert lean.holder is not None
    assert (lean.holder.kind, lean.holder.name) == ("command line", "--lean")


LIBRARY = """\
from functools import wraps
from torch import nn

def lenient(kind):
    original = kind.__init__
    @wraps(original)
    def __init__(self, *first, **named):
        original(self, **{name: value for name, value in named.items() if name != "lean"})
    kind.__init__ = __init__
    return kind

@lenient
class Head(nn.Linear):
    pass
"""
LENIENT = (
    COMMON
    + """
from heads import Head
model = Head(lean=True, in_features=8, out_features=4)
train(DataLoader(Numbers(), 64), model, torch.optim.SGD(model.parameters(), 0.1))
"""
)


def test_a_constructor_that_a_decorator_made_passes_names_on(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    _write(tmp_path, {"site-packages/heads.py": LIBRARY})
    text = f"import sys\nsys.path.insert(0, {str(tmp_path / 'site-packages')!r})\n" + LENIENT
    sites = Captured(request(write(tmp_path, text)), tmp_path).facts.sites
    own = next(site for site in sites if site.kind == "module")
    values = {one.name: (one.value, one.passed, one.holder and one.holder.kind) for one in own.arguments}
    called = (True, "call")
    assert values == {"lean": (True, *called), "in_features": (8, *called), "out_features": (4, *called)}


def test_a_property_is_followed_to_what_it_returned(settings: Captured) -> None:
    holder = _holders(settings)["module.out_features"]
    line = COMMON.splitlines().index("        return self.codes + 1") + 1
    assert (holder.kind, Path(holder.file).name, holder.line) == ("computed", "common.py", line)
    assert (holder.name, holder.column) == ("classes", 15)
