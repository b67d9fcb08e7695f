"""Values are followed to where they stand: constants, dicts, dataclasses, options, other modules."""

from __future__ import annotations

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context
from warpline.rulekit.origins import mapping, origin, unpacked_origin

CASES = {
    "literal": ("DataLoader(d, num_workers=0)", {}, ("literal", "train.py", 2)),
    "constant": ("WORKERS = 0\nDataLoader(d, num_workers=WORKERS)", {}, ("constant", "train.py", 2)),
    "imported constant": (
        "from config import WORKERS\nDataLoader(d, num_workers=WORKERS)",
        {"config.py": "A = 1\nWORKERS = 0\n"},
        ("constant", "config.py", 2),
    ),
    "constant of those that are all imported": (
        "from model import *\nfrom config import *\nDataLoader(d, num_workers=WORKERS)",
        {"config.py": "A = 1\nWORKERS = 0\n", "model.py": "WORKERS = 4\n"},
        ("constant", "config.py", 2),
    ),
    "constant of a module": (
        "import config\nDataLoader(d, num_workers=config.WORKERS)",
        {"config.py": "WORKERS = 0\n"},
        ("constant", "config.py", 1),
    ),
    "dict": (
        "cfg = {\n    'num_workers': 0,\n}\nDataLoader(d, num_workers=cfg['num_workers'])",
        {},
        ("dict", "train.py", 3),
    ),
    "dict of another module": (
        "import config\nDataLoader(d, num_workers=config.CFG['data']['num_workers'])",
        {"config.py": "CFG = {'data': {'num_workers': 0}}\n"},
        ("dict", "config.py", 1),
    ),
    "get": (
        "cfg = dict(num_workers=0)\nDataLoader(d, num_workers=cfg.get('num_workers', 0))",
        {},
        ("dict", "train.py", 2),
    ),
    "dataclass": (
        "from config import Config\nc = Config()\nDataLoader(d, num_workers=c.num_workers)",
        {"config.py": "class Config:\n    lr: float = 1.0\n    num_workers: int = 0\n"},
        ("field", "config.py", 3),
    ),
    "dataclass as a mapping": (
        "from config import Config\nc = asdict(Config())\nDataLoader(d, num_workers=c.pop('num_workers'))",
        {"config.py": "class Config:\n    num_workers: int = 0\n"},
        ("field", "config.py", 2),
    ),
    "option": (
        "parser.add_argument('--num-workers', type=int, default=0)\nargs = parser.parse_args()\n"
        "DataLoader(d, num_workers=args.num_workers)",
        {},
        ("argument", "train.py", 2),
    ),
    "parameter passed once": (
        "def make(n):\n    return DataLoader(d, num_workers=n)\nmake(0)",
        {},
        ("constant", "train.py", 4),
    ),
    "parameter default": (
        "def make(n=0):\n    return DataLoader(d, num_workers=n)\nmake()",
        {},
        ("constant", "train.py", 2),
    ),
    "own attribute": (
        "class T:\n    def __init__(self):\n        self.n = 0\n    def go(self):\n"
        "        DataLoader(d, num_workers=self.n)",
        {},
        ("literal", "train.py", 4),
    ),
    "inherited attribute": (
        "from base import Base\nclass T(Base):\n    def go(self):\n        DataLoader(d, num_workers=self.n)",
        {"base.py": "class Base:\n    def __init__(self, n=3):\n        self.n = 0\n"},
        ("literal", "base.py", 3),
    ),
    "own before inherited": (
        "class Base:\n    n = 4\nclass T(Base):\n    n = 2\n"
        "    def go(self):\n        DataLoader(d, num_workers=self.n)",
        {},
        ("literal", "train.py", 5),
    ),
    "inherited from itself": (
        "class T(T):\n    def go(self):\n        DataLoader(d, num_workers=self.n)",
        {},
        ("unknown", "train.py", 4),
    ),
    "computed": ("n = count() // 2\nDataLoader(d, num_workers=n)", {}, ("unknown", "train.py", 3)),
    "assigned twice": ("n = 0\nn = 4\nDataLoader(d, num_workers=n)", {}, ("unknown", "train.py", 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_origin(case: str) -> None:
    code, others, (kind, file, line) = CASES[case]
    files = {"/p/train.py": f"from torch.utils.data import DataLoader\n{code}\n"}
    project = read_project({**files, **{f"/p/{name}": text for name, text in others.items()}})
    context = Context(project.profile, project.texts.get)
    source = context.source("/p/train.py")
    assert source is not None
    call = next(found for n in range(1, 9) if (found := source.call(n, "DataLoader")) is not None)
    argument = source.argument(call, "num_workers")
    assert argument is not None
    found = origin(context, source, argument.value)
    assert (found.kind, found.place) == (kind, (f"/p/{file}", line))
    assert found.editable == (kind != "unknown")


def test_a_mapping_that_a_function_returns_is_followed() -> None:
    code = """\
class Rows:
    def options(self, n):
        return {"attn_mask": self.allowed[:n]}
y = attend(q, **rows.options(8))
"""
    project = read_project({"train.py": code})
    context = Context(project.profile, project.texts.get)
    source = context.source("train.py")
    assert source is not None
    (value,) = source.unpacked(source.calls(4, "attend")[0])
    found = unpacked_origin(context, source, value, "attn_mask")
    assert found is not None and (found.place[1], found.source.code(found.node)) == (3, "self.allowed[:n]")
    assert unpacked_origin(context, source, value, "dropout_p") is None


@pytest.mark.parametrize(
    "made", ["plan = {'workers': 2}", "def __init__(self):\n        self.plan = dict(workers=2)"]
)
def test_a_mapping_that_is_an_attribute_of_the_object_is_followed(made: str) -> None:
    code = f"class Rows:\n    {made}\n    def load(self):\n        return feed(self.rows, **self.plan)\n"
    project = read_project({"train.py": code})
    context = Context(project.profile, project.texts.get)
    source = context.source("train.py")
    (value,) = source.unpacked(source.calls_of("feed")[0])
    found, held = unpacked_origin(context, source, value, "workers"), mapping(context, source, value)
    assert found is not None and source.code(found.node) == "2"
    assert held is not None and source.code(held[1]) in code
