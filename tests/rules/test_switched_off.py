"""What the script itself switches off, TF32 or an option of its own, is told at that line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Executed, Setting, UserFrame
from warpline.wire.run import Site

SCRIPT = """\
#> device kind=cuda capability=(9,0); flags allow_tf32=false float32_matmul_precision=highest
import torch

def reproducible(seed):
    {line}

reproducible(1)
for x in batches:
    y = x @ w  #> cost step_ms=20 device_ms=20; op aten::mm device_ms=20 dtypes=float,float
"""
MATMUL, PRECISION = "torch.backends.cuda.matmul.allow_tf32", "float32_matmul_precision"


def found(line: str, *settings: Setting) -> tuple[str, Draft]:
    example = read_example(SCRIPT.format(line=line))
    facts = replace(example.profile.facts, settings=settings)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("line", "name", "value", "fixed"),
    [
        (f"{MATMUL} = False", MATMUL, False, f"{MATMUL} = True"),
        (
            'torch.set_float32_matmul_precision("highest")',
            PRECISION,
            "highest",
            'torch.set_float32_matmul_precision("high")',
        ),
    ],
)
def test_the_switch_is_turned_on_again(line: str, name: str, value: object, fixed: str) -> None:
    frame = UserFrame(FILE, 4, "reproducible")
    text, draft = found(line, Setting(name, value, (frame,)))
    assert draft.line == 4
    assert fixed in apply(text, draft.fixes[0].edits)


def test_what_is_switched_on_later_is_not_off() -> None:
    frame = UserFrame(FILE, 4, "reproducible")
    _, draft = found("pass", Setting(MATMUL, False, (frame,), 1), Setting(MATMUL, True, (frame,), 2))
    assert draft.line == 8


def test_of_two_switches_the_last_is_turned_on_again() -> None:
    first, last = UserFrame(FILE, 4, "reproducible"), UserFrame(FILE, 2, "<module>")
    line = f"{MATMUL} = False"
    _, draft = found(line, Setting(MATMUL, False, (first,), 1), Setting(PRECISION, "highest", (last,), 2))
    assert draft.line == 2
    text, draft = found(line, Setting(PRECISION, "highest", (last,), 1), Setting(MATMUL, False, (first,), 2))
    assert f"{MATMUL} = True" in apply(text, draft.fixes[0].edits)


def test_a_setting_from_before_the_script_has_no_line() -> None:
    _, draft = found("pass", Setting(MATMUL, False))
    assert draft.line == 8


OPTION = """\
#> device kind=cuda capability=(9,0); flags allow_tf32=true float32_matmul_precision=high
import argparse
import torch
from contextlib import nullcontext
from functools import partial

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true", default=False)
parser.add_argument("--channels-last", action="store_true", default=False)
args = parser.parse_args()
around = nullcontext
if args.amp:
    around = partial(torch.autocast, "cuda", torch.float16)
if args.channels_last:
    model.to(memory_format=torch.channels_last)
with {around}:
    y = model(x)
    #^ cost step_ms=20 device_ms=20; kernel nchwToNhwcKernel count=50 device_ms=5 tensor_cores=true
    #^ kernel sm90_xmma_fprop_tf32f32 count=50 device_ms=14 tensor_cores=true
    #^ op aten::cudnn_convolution device_ms=14 shapes=[[8,64,56,56]] dtypes=float strides=[[200704,3136,56,1]]
"""
NOT = ("around = partial", "model.to")  # neither option was passed


def of_option(
    rule: str, around: str = "around()", argv: tuple[str, ...] = (), option: str = OPTION
) -> tuple[str, Draft]:
    example = read_example(option.format(around=around))
    lines = example.text.split("\n")
    ran = tuple(at for at, line in enumerate(lines, 1) if line and not line.strip().startswith(NOT))
    facts = replace(example.profile.facts, executed=Executed({FILE: ran}, complete=True))
    manifest = replace(example.profile.manifest, argv=argv)
    found = rule_named(rule)
    assert found is not None
    profile = replace(example.profile, facts=facts, manifest=manifest)
    (draft,) = found.find(Context(profile, texts(example)))
    return example.text, draft


@pytest.mark.parametrize(("rule", "severity"), [("fp32-matmul", "hint"), ("channels-first-conv", None)])
def test_the_script_s_own_option_is_switched_on(rule: str, severity: str | None) -> None:
    text, draft = of_option(rule)
    assert draft.severity == severity
    before, after = (one.split("\n")[draft.line - 1] for one in (text, apply(text, draft.fixes[0].edits)))
    assert ("--amp" if rule == "fp32-matmul" else "--channels-last") in before
    assert after == before.replace("default=False", "default=True")


def test_an_autocast_that_is_there_is_switched_on() -> None:
    text, draft = of_option("fp32-matmul", 'torch.autocast("cuda", enabled=args.amp)')
    assert "--amp" in text.split("\n")[draft.line - 1]
    assert '"--amp", action="store_true", default=True' in apply(text, draft.fixes[0].edits)


def test_an_option_that_the_command_line_passes_stays() -> None:
    text, draft = of_option("fp32-matmul", argv=("--amp",))
    assert "--amp" not in text.split("\n")[draft.line - 1]


@pytest.mark.parametrize("rule", ["fp32-matmul", "channels-first-conv"])
def test_an_option_without_a_default_gets_one(rule: str) -> None:
    text, draft = of_option(rule, option=OPTION.replace(", default=False", ""))
    before, after = (one.split("\n")[draft.line - 1] for one in (text, apply(text, draft.fixes[0].edits)))
    assert after == before.replace('"store_true"', '"store_true", default=True')


SHARED = OPTION.replace(", default=False", "").replace(
    'parser.add_argument("--channels',
    'parser.add_argument("--no-amp", action="store_false", dest="amp")\nparser.add_argument("--channels',
)


def test_of_options_that_share_a_name_the_first_gets_the_default() -> None:
    text, draft = of_option("fp32-matmul", option=SHARED)
    assert "--amp" in text.split("\n")[draft.line - 1]
    assert '"--amp", action="store_true", default=True' in apply(text, draft.fixes[0].edits)


def test_an_option_that_shares_the_name_is_passed() -> None:
    text, draft = of_option("fp32-matmul", option=SHARED, argv=("--no-amp",))
    assert "--amp" not in text.split("\n")[draft.line - 1]


CONFIGURED = """\
#> device kind=cuda capability=(9,0); flags allow_tf32=false float32_matmul_precision=highest
import argparse
import torch
from dataclasses import dataclass

parser = argparse.ArgumentParser()
parser.add_argument("--precision", default="highest")
args = parser.parse_args()

@dataclass
class Numerics:
    products: str = "highest"
    tf32: bool = False

def prepare(numerics):
    {line}

prepare(Numerics())
for x in batches:
    y = x @ w  #> cost step_ms=20 device_ms=20; op aten::mm device_ms=20 dtypes=float,float
"""


def configured(line: str, name: str, value: object, argv: tuple[str, ...] = ()) -> tuple[str, Draft]:
    example = read_example(CONFIGURED.format(line=line))
    at = next(at for at, text in enumerate(example.text.split("\n"), 1) if "def prepare" in text) + 1
    setting = Setting(name, value, (UserFrame(FILE, at, "prepare"),))
    facts = replace(example.profile.facts, settings=(setting,))
    manifest = replace(example.profile.manifest, argv=argv)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    profile = replace(example.profile, facts=facts, manifest=manifest)
    (draft,) = rule.find(Context(profile, texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("line", "name", "value", "before", "after"),
    [
        (
            "torch.set_float32_matmul_precision(numerics.products)",
            PRECISION,
            "highest",
            'products: str = "highest"',
            'products: str = "high"',
        ),
        (f"{MATMUL} = numerics.tf32", MATMUL, False, "tf32: bool = False", "tf32: bool = True"),
        (
            "torch.set_float32_matmul_precision(args.precision)",
            PRECISION,
            "highest",
            'default="highest"',
            'default="high"',
        ),
    ],
)
def test_the_value_is_changed_where_it_is_written(
    line: str, name: str, value: object, before: str, after: str
) -> None:
    text, draft = configured(line, name, value)
    assert before in text.split("\n")[draft.line - 1]
    assert after in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("torch.set_float32_matmul_precision(args.precision)", ("--precision", "highest")),
        ("torch.set_float32_matmul_precision(loaded[numerics])", ()),  # not known
        ("torch.set_float32_matmul_precision(str(numerics.tf32))", ()),  # no value of a setting
    ],
)
def test_a_value_from_elsewhere_stays(line: str, argv: tuple[str, ...]) -> None:
    text, draft = configured(line, PRECISION, "highest", argv)
    assert "prepare" in text.split("\n")[draft.line - 2]
    assert all("autocast" in fix.title for fix in draft.fixes)


COMPILED = """\
#> device kind=cuda capability=(9,0); flags allow_tf32={tf32} float32_matmul_precision={precision}
import torch

encoder = torch.compile(encoder)
for tokens in batches:
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled={enabled}):
        found = encoder(tokens)
    loss = (found.float() @ memory).logsumexp(1).mean()
    #^ cost step_ms=20 device_ms=20; op aten::mm device_ms=20 dtypes=float,float
    loss.backward()
"""


def of_compiled(enabled: bool, tf32: bool = False) -> list[Draft]:
    """The survey of the step, which says what runs under autocast, leaves out compiled code."""
    precision = "high" if tf32 else "highest"
    example = read_example(COMPILED.format(enabled=enabled, tf32=str(tf32).lower(), precision=precision))
    made = Site("autocast", FILE, 5, "<module>", {"device": "cuda", "dtype": "bfloat16", "enabled": enabled})
    facts = replace(example.profile.facts, sites=(made,))
    assert facts.flags.autocast is None
    rule = rule_named("fp32-matmul")
    assert rule is not None
    return list(rule.find(Context(replace(example.profile, facts=facts), texts(example))))


def test_products_outside_of_autocast_are_told_of_compiled_code_too() -> None:
    (draft,) = of_compiled(enabled=True)
    assert draft.line == 7
    assert [fix.title for fix in draft.fixes] == ["Allow TF32 for float32 matrix products"]


def test_what_the_script_rounds_itself_beside_autocast_is_not_told() -> None:
    assert not of_compiled(enabled=True, tf32=True)


TUNED = """\
#> flags cudnn_benchmark=false deterministic=false
import torch

class Defaults:
    autotune = False

class Small(Defaults):
    side = 16

def prepare(config):
    {line}

prepare(Small)
for x in batches:
    y = model(x)
    #^ cost device_ms=30; op aten::cudnn_convolution count=53 device_ms=25 shapes=[[32,3,224,224],[64,3,7,7]]
"""


def of_convolutions(line: str) -> tuple[str, Draft]:
    example = read_example(TUNED.format(line=line))
    at = next(at for at, text in enumerate(example.text.split("\n"), 1) if "def prepare" in text) + 1
    setting = Setting("torch.backends.cudnn.benchmark", False, (UserFrame(FILE, at, "prepare"),))
    facts = replace(example.profile.facts, settings=(setting,))
    rule = rule_named("untuned-convolution")
    assert rule is not None
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("torch.backends.cudnn.benchmark = False", "benchmark = False", "benchmark = True"),
        ("torch.backends.cudnn.benchmark = config.autotune", "autotune = False", "autotune = True"),
    ],
)
def test_timing_of_convolutions_is_switched_on_where_it_is_off(line: str, before: str, after: str) -> None:
    text, draft = of_convolutions(line)
    assert before in text.split("\n")[draft.line - 1]
    assert after in apply(text, draft.fixes[0].edits)


def test_a_switch_that_names_no_value_is_told_at_its_line() -> None:
    text, draft = of_convolutions("torch.backends.cudnn.benchmark = loaded(config)")
    assert "loaded(config)" in text.split("\n")[draft.line - 1]
    assert not draft.fixes


SEEDED = """\
#> device kind=cuda capability=(9,0); flags cudnn_benchmark=false
import torch
import torch.backends.cudnn as cudnn

if seed is not None:
    cudnn.benchmark = False  #> skipped
for x in batches:
    y = net(x)
    #^ cost step_ms=20 device_ms=20; op aten::cudnn_convolution device_ms=20
"""


@pytest.mark.parametrize("ran", [False, True])
def test_a_branch_that_did_not_run_may_set_it_otherwise(ran: bool) -> None:
    example = read_example(SEEDED.replace("  #> skipped", "") if ran else SEEDED)
    rule = rule_named("untuned-convolution")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    if ran:
        assert "the script already sets it" in draft.message
    else:
        after = apply(example.text, draft.fixes[0].edits)
        assert after.index("cudnn.benchmark = True") < after.index("if seed is not None")
