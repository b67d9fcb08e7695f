"""fp32-matmul where a value of the script's own chooses no autocast: run before and after the edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply

SCRIPT = """\
#> device kind=cuda capability=(9,0) bf16=true; flags allow_tf32=false autocast=false
import argparse
import contextlib
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import torch

{setup}
model = torch.nn.Linear(4, 4)
batches = [torch.ones(2, 4)]

def train({given}):
    {before}
    for batch in batches:
        with {around}:
            seen.append(torch.is_autocast_enabled("cpu"))
            made = model(batch)
            #^ cost device_ms=60; op aten::addmm count=73 device_ms=50 dtypes=float,float,float
        loss = made.float().mean()  #> cost device_ms=1
        loss.backward()

train({passed})
"""
TABLE = """\
CONFIG = {"steps": 2, "arithmetic": "single"}
ARITHMETIC = {
    "single": contextlib.nullcontext,
    "half": partial(torch.autocast, "cpu", dtype=torch.float16),
    "mixed": partial(torch.autocast, "cpu", dtype=torch.bfloat16),
}
"""
OPTION = """\
parser = argparse.ArgumentParser()
parser.add_argument("--precision", default="fp32")
parser.add_argument("--amp", action="store_true")
args = parser.parse_args(argv)
"""
FIELD = """\
@dataclass
class Config:
    precision: str = "fp32"
    amp: bool = False

cfg = Config()
"""
BRANCHES = 'ctx = nullcontext() if not args.amp else torch.autocast("cpu", dtype=torch.bfloat16)'
TYPES = 'dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[cfg.precision]'
FACTORY = """\
def arithmetic(cfg):
    table = {"fp32": lambda: nullcontext(), "bf16": lambda: torch.autocast("cpu", dtype=torch.bfloat16)}
    return table.get(cfg.precision, nullcontext)

"""
FULL = """\
parser = argparse.ArgumentParser()
parser.add_argument("--in-full", dest="mixed", action="store_false")
"""
ENABLED = 'torch.autocast("cpu", dtype=torch.bfloat16, enabled={})'


def text_of(setup: str, around: str, before: str = "pass", given: str = "", passed: str = "") -> str:
    return SCRIPT.format(setup=setup, around=around, before=before, given=given, passed=passed)


def drafted(script: str, argv: tuple[str, ...] = ()) -> tuple[str, Draft]:
    example = read_example(script)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    manifest = replace(example.profile.manifest, argv=argv)
    (draft,) = rule.find(Context(replace(example.profile, manifest=manifest), texts(example)))
    return example.text, draft


def autocast_on(text: str, argv: tuple[str, ...] = ()) -> list[bool]:
    seen: list[bool] = []
    names: dict[str, Any] = {"seen": seen, "argv": list(argv), "__name__": "__main__"}
    exec(text, names)
    return seen


CASES = {
    "a table of contexts": (
        text_of(TABLE, "arithmetic()", 'arithmetic = ARITHMETIC[config["arithmetic"]]', "config", "CONFIG"),
        '"arithmetic": "mixed"',
    ),
    "a table that is called at once": (
        text_of(TABLE, 'ARITHMETIC[CONFIG["arithmetic"]]()'),
        '"arithmetic": "mixed"',
    ),
    "a table of flags": (
        text_of('MIXED = False\nTABLE = {False: nullcontext(), True: torch.autocast("cpu", torch.bfloat16)}',
                "TABLE[MIXED]"),
        "MIXED = True",
    ),
    "branches, an option": (
        text_of(OPTION + BRANCHES, "ctx"),
        '"--amp", action="store_true", default=True',
    ),
    "branches, a field": (
        text_of(FIELD + BRANCHES.replace("args", "cfg"), "ctx"),
        "amp: bool = True",
    ),
    "branches, a word": (
        text_of(FIELD, 'torch.autocast("cpu", torch.bfloat16) if cfg.precision == "bf16" else nullcontext()'),
        'precision: str = "bf16"',
    ),
    "enabled": (
        text_of("use_amp = False", 'torch.autocast("cpu", dtype=torch.bfloat16, enabled=use_amp)'),
        "use_amp = True",
    ),
    "enabled, an entry": (
        text_of('RUN = {"numbers": {"mixed": False}}', ENABLED.format('RUN["numbers"]["mixed"]')),
        '"mixed": True',
    ),
    "enabled, a field": (
        text_of(FIELD.replace("= False", "= field(default=False)"), ENABLED.format("cfg.amp")),
        "amp: bool = field(default=True)",
    ),
    "enabled, what a parser sets": (
        text_of(FULL + "parser.set_defaults(mixed=False)\nargs = parser.parse_args(argv)\n",
                ENABLED.format("args.mixed")),
        "parser.set_defaults(mixed=True)",
    ),
    "enabled, an option of another name": (
        text_of(FULL.replace('"store_false"', '"store_true"') + "args = parser.parse_args(argv)\n",
                ENABLED.format("args.mixed")),
        'action="store_true", default=True)',
    ),
    "enabled, a condition": (
        text_of(OPTION + 'mixed = args.amp and hasattr(torch, "amp")', ENABLED.format("mixed")),
        '"--amp", action="store_true", default=True',
    ),
    "enabled, a scaler": (
        text_of(OPTION + 'scaler = torch.amp.GradScaler("cpu") if args.amp else None',
                ENABLED.format("scaler is not None")),
        '"--amp", action="store_true", default=True',
    ),
    "enabled, a word beside a condition, made before the loop": (
        text_of(OPTION, "half",
                'half = ' + ENABLED.format('torch.get_num_threads() > 0 and args.precision == "bf16"')),
        '"--precision", default="bf16"',
    ),
    "enabled, any word but one, of two": (
        text_of(OPTION.replace('"fp32"', '"fp32", choices=("fp32", "bf16")')
                + 'mixed = args.precision != "fp32"', ENABLED.format("mixed")),
        '"--precision", default="bf16"',
    ),
    "branches of statements, a word": (
        text_of(OPTION + 'if args.precision == "bf16":\n    ctx = torch.autocast("cpu", torch.bfloat16)\n'
                "else:\n    ctx = nullcontext()\n", "ctx"),
        '"--precision", default="bf16"',
    ),
    "branches, a word beside a condition": (
        text_of(OPTION + 'ctx = torch.autocast("cpu", torch.bfloat16) if torch and args.precision == "bf16" '
                "else nullcontext()", "ctx"),
        '"--precision", default="bf16"',
    ),
    "a table of types": (
        text_of(FIELD + TYPES, 'torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32)'),
        'precision: str = "bf16"',
    ),
    "a type by its name": (
        text_of('DTYPE = "float32"\n', 'torch.autocast("cpu", dtype=getattr(torch, DTYPE), '
                'enabled=DTYPE != "float32")'),
        'DTYPE = "bfloat16"',
    ),
    "a function": (
        text_of(FIELD + FACTORY, "arithmetic(cfg)()"),
        'precision: str = "bf16"',
    ),
    "an option with a word": (
        text_of(OPTION + TYPES.replace("cfg", "args"),
                'torch.autocast("cpu", dtype, dtype != torch.float32)'),
        '"--precision", default="bf16"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_value_that_chooses_is_the_place_and_the_edit(case: str) -> None:
    pytest.importorskip("torch")
    script, written = CASES[case]
    text, draft = drafted(script)
    assert draft.fixes[0].title == "Switch on the script's autocast"
    fixed = apply(text, draft.fixes[0].edits)
    assert written in fixed.split("\n")[draft.line - 1]
    assert autocast_on(text) == [False]
    assert autocast_on(fixed) == [True]


def test_the_older_autocast_takes_the_value_first() -> None:
    around = 'torch.cuda.amp.autocast(torch.cuda.is_available() and args.precision == "fp16")'
    setup = OPTION.replace('"fp32"', '"fp32", choices=["fp32", "fp16"]') + "scaler = torch.amp.GradScaler()\n"
    text, draft = drafted(text_of(setup, around))
    assert 'default="fp16"' in apply(text, draft.fixes[0].edits).split("\n")[draft.line - 1]


def test_a_value_from_the_command_line_is_told_there() -> None:
    script, _ = CASES["an option with a word"]
    text, draft = drafted(script, ("--precision", "fp32"))
    assert '"--precision"' in text.split("\n")[draft.line - 1]
    assert "The command line passes `--precision`, which chooses float32." in draft.message
    assert all("autocast" not in fix.title for fix in draft.fixes)


CONFIGURED = """\
dtype = "bfloat16" if torch.cuda.is_available() else "float16"
exec(open("configurator.py").read())
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
ctx = nullcontext() if device_type == "cpu" else torch.autocast(device_type, dtype=ptdtype)
"""


@pytest.mark.parametrize(("argv", "told"), [(("--dtype=float32",), True), (("--steps=3",), False)])
def test_a_value_that_a_configurator_reads_from_the_command_line(argv: tuple[str, ...], told: bool) -> None:
    script = text_of(CONFIGURED, "ctx").replace("autocast=false", "autocast=true autocast_dtype=float32")
    text, draft = drafted(script, argv)
    assert ("dtype = " in text.split("\n")[draft.line - 1]) is told
    assert ("The command line passes `--dtype`" in draft.message) is told
    assert all("autocast" not in fix.title for fix in draft.fixes)


@pytest.mark.parametrize("word", ["--in-full", "--no-in-full"])
def test_a_default_that_the_command_line_replaces_stays(word: str) -> None:
    script, _ = CASES["enabled, what a parser sets"]
    text, draft = drafted(script, (word,))
    assert "set_defaults" not in text.split("\n")[draft.line - 1]


def test_autocast_in_float32_that_is_not_followed_is_told() -> None:
    script = text_of("", 'torch.autocast("cpu", dtype=read("precision"))')
    _, draft = drafted(script.replace("autocast=false", "autocast=true autocast_dtype=float32"))
    assert [fix.title for fix in draft.fixes] == ["Allow TF32 for float32 matrix products"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_autocast_in_float32_is_none(dtype: str) -> None:
    """On a GPU torch says that autocast is on, whatever type it is given."""
    flags = f"flags allow_tf32=false autocast=true autocast_dtype={dtype}"
    around = 'torch.autocast("cpu", dtype=dtype)'
    text, draft = drafted(
        text_of(FIELD + TYPES, around).replace("flags allow_tf32=false autocast=false", flags)
    )
    chosen = 'precision: str = "fp32"' in text.split("\n")[draft.line - 1]
    assert chosen is (dtype == "float32")


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        # The table has nothing in full precision, or nothing that the device and the script can use.
        ("a table of contexts", "contextlib.nullcontext,", 'partial(torch.profiler.record_function, "all"),'),
        ("a table of contexts", '    "mixed": partial(torch.autocast, "cpu", dtype=torch.bfloat16),\n', ""),
        ("a table of contexts", 'dtype=torch.bfloat16', "dtype=torch.bfloat16, enabled=False"),
        ("a table of types", '"bf16": torch.bfloat16', '"fp64": torch.float64'),
        # The value is another one, or something else may set it.
        ("a table of contexts", '"arithmetic": "single"', '"arithmetic": read("precision")'),
        ("a table of contexts", "ARITHMETIC = {", 'CONFIG["arithmetic"] = read("precision")\nARITHMETIC = {'),
        ("a table of contexts", '"arithmetic": "single"', '"arithmetic": "mixed"'),
        ("a table of types", "cfg = Config()", 'cfg = Config(precision="fp32")'),
        ("branches, a field", "cfg = Config()", "cfg = Config()\ncfg.amp = read()"),
        ("branches, a word beside a condition", "torch and", 'args.precision == "half" or'),
        ("branches of statements, a word", "    ctx = nullcontext()", "    ctx = read()"),
        ("enabled, any word but one, of two", '"bf16")', '"bf16", "fp16")'),
        # It does not reach the forward pass.
        ("a table of contexts", "with arithmetic():", "with nullcontext():"),
        ("branches, an option", "with ctx:", "with nullcontext():"),
    ],
)  # fmt: skip
def test_other_values_stay(case: str, old: str, new: str) -> None:
    script, _ = CASES[case]
    assert old in script
    text, draft = drafted(script.replace(old, new))
    assert "with " in text.split("\n")[draft.line - 1] or "model(" in text.split("\n")[draft.line - 1]
    assert all("script's" not in fix.title for fix in draft.fixes)
