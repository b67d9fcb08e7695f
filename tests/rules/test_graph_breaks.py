"""What a graph break costs: the host's work, or what goes through memory there; and the reason for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import RemoveLaunches, Scale
from warpline.model.profile import Crossing
from warpline.rulekit import Context, Draft
from warpline.rules.graph_break import GraphBreak
from warpline.rules.unfused_elementwise import UnfusedElementwise
from warpline.text.edits import apply
from warpline.wire.run import CompiledKernel

SCRIPT = """\
#> steps step_ms=10
import torch

@torch.compile
def advance(state, dt):
    flux = state.exp() * dt  #> cost device_ms=4 step_ms=4
    print("advanced by", dt)  #> event graph_break reason="{reason}"
    return state - flux.sqrt()  #> cost device_ms=5 step_ms=5 idle_ms={idle}
"""
KERNELS = (
    CompiledKernel("triton_poi_fused_exp_mul_0", ((FILE, 5, "advance"),), False, 0, "0/0"),
    CompiledKernel("triton_poi_fused_sqrt_sub_0", ((FILE, 7, "advance"),), False, 1, "1/0"),
    CompiledKernel("triton_poi_fused_neg_0", ((FILE, 30, "other"),), False, 2, "2/0"),
)


def found(
    saved_ms: float = 3.0, line: int = 6, idle: float = 0, reason: str = "call to builtin print"
) -> tuple[str, list[Draft]]:
    example = read_example(SCRIPT.format(idle=idle, reason=reason))
    crossing = Crossing(FILE, line, 5e9, saved_ms, 9.0, ("0/0", "1/0"))
    facts = replace(example.profile.facts, compiled_kernels=KERNELS)
    profile = replace(example.profile, facts=facts, crossings=(crossing,))
    return example.text, list(GraphBreak().find(Context(profile, texts(example))))


def test_what_is_written_and_read_at_a_break_is_told() -> None:
    text, (draft,) = found()
    assert draft.line == 6
    assert "4.7 GiB a step are written on one side of it, only to be read on the other" in draft.message
    assert draft.change == Scale(((FILE, 5), (FILE, 7)), device=pytest.approx(1 - 3 / 9))
    assert "if not torch.compiler.is_compiling():" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize("other", [{"saved_ms": 0.05}, {"line": 5}])
def test_what_takes_no_time_is_not(other: dict[str, float]) -> None:
    assert not found(**other)[1]  # type: ignore[arg-type]


def test_where_the_device_waits_longer_that_is_told() -> None:
    _, (draft,) = found(idle=4)
    assert "the host works and the device waits for 4.00 ms" in draft.message


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("call to builtin print", "(call to builtin print)"),
        ("Unsupported Tensor.item() call. Set a flag.", "(Unsupported Tensor.item() call)"),
        (
            "Encountered graph break when attempting to trace CALL: a call, e.g. f(x, y):\\n\\n"
            "logging.Logger method not supported\\n  Explanation: it is not",
            "(logging.Logger method not supported)",
        ),
    ],
)
def test_the_first_sentence_of_the_reason_is_told(reason: str, told: str) -> None:
    example = read_example(SCRIPT.format(idle=4, reason="-"))
    (event,) = example.profile.facts.compile_events
    said = replace(event, reason=reason.replace("\\n", "\n"))
    facts = replace(example.profile.facts, compile_events=(said,))
    (draft,) = GraphBreak().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert told in draft.message


LOOP = """\
#> steps step_ms=20
import torch

@torch.compile
def advance(depth, flow):
    for _ in range(4):
        speed = (9.81 * depth).sqrt() + (flow / depth).abs()
        #^ cost device_ms=9 calls=4; kernel elementwise_kernel count=20 device_ms=9
        step = 0.4 / speed.max().item()
        #^ cost device_ms=1 idle_ms=0.01 calls=4; kernel reduce_kernel count=4 device_ms=1
        #^ event graph_break reason="{reason}"
        depth = depth - step * (flow.roll(-1) - flow.roll(1)) / 2
        #^ cost device_ms=9 calls=4; kernel elementwise_kernel count=12 device_ms=6
        #^ kernel at::native::roll_cuda_kernel<float> count=8 device_ms=3
    return depth
"""


def test_a_function_that_is_not_compiled_could_be_fused() -> None:
    example = read_example(LOOP.format(reason="-"))
    (event,) = example.profile.facts.compile_events
    said = replace(
        event,
        reason="Failed to handle graph break gracefully. Skipping the function and falling back to eager.\n\n"
        "Unsupported Tensor.item() call. A hint.",
    )
    facts = replace(example.profile.facts, compile_events=(said,))
    context = Context(replace(example.profile, facts=facts), texts(example))
    (draft,) = GraphBreak().find(context)
    assert (
        "(Unsupported Tensor.item() call), after which it cannot go on: none of `advance` is compiled"
        in draft.message
    )
    assert "take 19.0 ms (95 %)" in draft.message
    assert "a tensor of one number" in draft.message
    assert not list(UnfusedElementwise().find(context))


def test_a_function_of_which_a_part_was_compiled_has_only_the_wait() -> None:
    example = read_example(LOOP.format(reason="call to builtin print"))
    kernel = CompiledKernel("triton_poi_fused_sqrt_0", ((FILE, 7, "advance"),), False, 0, "0/0")
    facts = replace(example.profile.facts, compiled_kernels=(kernel,))
    (draft,) = GraphBreak().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert "cannot go on" not in draft.message


WITHIN = """\
#> steps step_ms=10
import logging
import torch

log = logging.getLogger(__name__)

def shapes(*tensors):
    log.info("shapes %s", [one.shape for one in tensors])
    #^ cost cpu_ms=0.02; event graph_break reason="Logger not supported"

def told(name, *tensors):
    shapes(*tensors)  #> cost cpu_ms=0.02

@torch.compile
def advance(state, dt):
    flux = state.exp() * dt  #> cost device_ms=4
    told("advanced", flux)  #> cost step_ms=0.5 idle_ms={idle} cpu_ms=0.5
    return state - flux.sqrt()  #> cost device_ms=5

def start(state):
    told("begun", state)  #> cost idle_ms=2 cpu_ms=2
"""
#: What each line calls, by its function.
CALLED = {7: ("shapes", ""), 10: ("told", "shapes"), 15: ("advance", "told"), 19: ("start", "told")}


def within(idle: float, compiled: bool = True) -> tuple[str, list[Draft]]:
    """A break in a function that another one calls, which compiled code calls, and code that is not."""
    example = read_example(WITHIN.format(idle=idle))
    lines = []
    for cost in example.profile.lines:
        function, called = CALLED.get(cost.line, ("advance", ""))
        lines.append(replace(cost, function=function, called=((FILE, called),) if called else ()))
    kernels = (CompiledKernel("triton_poi_fused_exp_mul_0", ((FILE, 14, "advance"),), False, 0, "0/0"),)
    facts = replace(example.profile.facts, compiled_kernels=kernels if compiled else ())
    profile = replace(example.profile, lines=tuple(lines), facts=facts)
    return example.text, list(GraphBreak().find(Context(profile, texts(example))))


def test_a_break_in_what_compiled_code_calls_has_the_idle_time_of_that_code() -> None:
    text, (draft,) = within(idle=4)
    assert (draft.line, draft.cause.line) == (7, 15)
    assert "the device waits for 4.00 ms" in draft.message
    assert draft.change == RemoveLaunches(((FILE, 7), (FILE, 15)))
    assert "    if not torch.compiler.is_compiling():\n        log.info(" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize("other", [{"idle": 0.01}, {"idle": 4, "compiled": False}])
def test_code_that_is_not_compiled_loses_nothing_by_it(other: dict[str, Any]) -> None:
    assert not within(**other)[1]


@pytest.mark.parametrize(
    ("second", "edited"), [("print(flux.dtype)", 2), ("reads.append(flux.max().item())", 0)]
)
def test_of_breaks_in_a_row_all_are_edited_or_none(second: str, edited: int) -> None:
    script = SCRIPT.replace("    return", f'    {second}  #> event graph_break reason="-"\n    return')
    example = read_example(script.format(idle=0, reason="-"))
    crossing = Crossing(FILE, 7, 5e9, 3.0, 9.0, ("0/0", "2/0"), also=((FILE, 6),))
    profile = replace(example.profile, crossings=(crossing,))
    (draft,) = GraphBreak().find(Context(profile, texts(example)))
    assert draft.line == 7
    changed = apply(example.text, draft.fixes[0].edits) if draft.fixes else example.text
    assert changed.count("if not torch.compiler.is_compiling():") == edited


ON_CPU = """\
#> device kind=cpu; steps step_ms=20
import torch

def said(stage, wave):
    print(stage, wave.shape)
    #^ cost step_ms={own}; event graph_break reason="call to builtin print"

def leap(wave, rate):  #> cost step_ms=15 idle_ms=15
    wave = wave + rate * wave.sin()
    said("leapt", wave)  #> cost step_ms=0.1
    return wave

@torch.compile
def advance(wave, rates):
    for rate in rates:
        wave = leap(wave, rate)
        #^ cost step_ms=1; op Torch-Compiled_Region count={pieces}
    return wave
"""


def on_cpu(pieces: int, own: float = 0.1, kernel: str = "0/0") -> list[Draft]:
    """A function that is compiled for each turn of the loop that calls it, since another one breaks."""
    example = read_example(ON_CPU.format(pieces=pieces, own=own))
    calls = {8: "said", 14: "leap"}
    lines = [
        replace(
            cost,
            function={4: "said", 6: "leap", 8: "leap", 14: "advance"}[cost.line],
            called=((FILE, calls[cost.line]),) if cost.line in calls else (),
            ops=tuple(replace(op, name="Torch-Compiled Region: 0/0") for op in cost.ops),
        )
        for cost in example.profile.lines
    ]
    made = CompiledKernel("cpp_fused_add_mul_sin_0", ((FILE, 7, "leap"),), False, 0, kernel)
    facts = replace(example.profile.facts, compiled_kernels=(made,))
    profile = replace(example.profile, facts=facts, lines=tuple(lines))
    return list(GraphBreak().find(Context(profile, texts(example))))


def test_on_a_cpu_compiled_code_is_no_wait() -> None:
    (draft,) = on_cpu(pieces=6)
    assert "cuts compiled code into 6 pieces a step" in draft.message
    assert "loops take 15.0 ms (75 %)" in draft.message and "wait" not in draft.message
    assert draft.change is None and draft.saving_ms == pytest.approx(15 * 5 / 6), "at most"
    assert draft.fixes


@pytest.mark.parametrize("other", [{"pieces": 1}, {"pieces": 6, "kernel": "7/0"}])
def test_on_a_cpu_one_piece_cannot_be_fused(other: dict[str, Any]) -> None:
    assert not on_cpu(**other)
    (draft,) = on_cpu(**other, own=2)
    assert "the line takes 2.00 ms" in draft.message


GOES_ON = """\
#> device kind=cpu; steps step_ms=20
import torch

@torch.compile  #> cost step_ms={before} idle_ms={before} calls=1
def spread(heat, rate):
    flux = rate * heat.diff()
    if flux.abs().max() > 1:  #> event graph_break reason="Data-dependent branching"
        #^ cost step_ms={after} idle_ms={after} calls=2; op Torch-Compiled_Region count=1
        raise ValueError("too fast")
    return heat[1:] + flux.sin()

heat = spread(heat, 0.1)  #> cost step_ms=1 calls=1; op Torch-Compiled_Region count=1
"""


def going_on(before: float, after: float) -> list[Draft]:
    """A function that is compiled in two pieces, of which the second begins at the break's line."""
    example = read_example(GOES_ON.format(before=before, after=after))
    regions = {6: "1/0", 10: "0/0"}
    lines = tuple(
        replace(
            cost,
            ops=tuple(replace(op, name=f"Torch-Compiled Region: {regions[cost.line]}") for op in cost.ops),
        )
        for cost in example.profile.lines
    )
    made = (
        CompiledKernel("cpp_fused_diff_mul_0", ((FILE, 5, "spread"),), False, 0, "0/0"),
        CompiledKernel("cpp_fused_add_sin_0", ((FILE, 8, "spread"),), False, 1, "1/0"),
    )
    facts = replace(example.profile.facts, compiled_kernels=made)
    profile = replace(example.profile, facts=facts, lines=lines)
    return list(GraphBreak().find(Context(profile, texts(example))))


@pytest.mark.parametrize(("before", "after"), [(10, 8), (8, 10)])
def test_on_a_cpu_a_break_costs_at_most_the_shorter_part(before: float, after: float) -> None:
    (draft,) = going_on(before, after)
    assert "cuts compiled code into 2 pieces a step" in draft.message
    assert "loops take 18.0 ms (90 %)" in draft.message
    assert draft.cost_ms == 18 and draft.saving_ms == 8


@pytest.mark.parametrize(("before", "after"), [(18, 0.01), (0.01, 18)])
def test_on_a_cpu_a_break_at_an_end_cuts_nothing(before: float, after: float) -> None:
    assert not any("cuts compiled code" in draft.message for draft in going_on(before, after))


def edited(statement: str, reason: str = "-") -> str:
    """The script with ``statement`` (its first line has the break) as the finding's edit leaves it."""
    first, _, rest = statement.partition("\n")
    said = f'{first}  #> cost idle_ms=4; event graph_break reason="{reason}"\n{rest}'.rstrip()
    example = read_example(NAMED.replace("STATEMENT", said))
    (draft,) = GraphBreak().find(Context(example.profile, texts(example)))
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else ""


NAMED = """\
#> steps step_ms=10
import logging
import sys
import torch

audit = logging.getLogger("audit")
board = Board()

@torch.compile
def advance(state, dt):
    flux = state.exp() * dt  #> cost device_ms=4
    STATEMENT
    return state - flux.sqrt()  #> cost device_ms=5
"""
GUARD = "    if not torch.compiler.is_compiling():\n        "


@pytest.mark.parametrize(
    "statement",
    [
        'audit.info("%s", flux.shape)',
        'LOGGER.log(10, "%s", flux.shape)',
        'logging.getLogger("x").error("%s", flux.shape)',
        'sys.stderr.write("leapt")',
        'print("mean", flux.mean().item())',
        "if audit.isEnabledFor(10):\n        audit.debug(flux)",
        "if torch.isnan(flux).any(): print(flux)",
    ],
)
def test_what_only_prints_or_logs_is_excluded(statement: str) -> None:
    assert GUARD + statement.split("\n", maxsplit=1)[0].rstrip() in edited(statement)


@pytest.mark.parametrize(
    "statement",
    [
        'board.info("mean", flux)',
        "log = board.error(flux)",
        "print(flux); flux.neg_()",
        "if audit.isEnabledFor(10):\n        audit.debug(flux)\n        flux = flux.abs()",
        "if audit.isEnabledFor(10):\n        audit.debug(flux)\n    else:\n        flux = -flux",
        "if (flux := flux.abs()).any():\n        print(flux)",
        "if board.ready(flux):\n        print(flux)",
    ],
)
def test_what_does_more_is_left_to_the_user(statement: str) -> None:
    assert not edited(statement)


def test_all_lines_that_log_of_a_function_that_was_given_up_are_excluded() -> None:
    script = WITHIN.replace(
        "    log.info(",
        "    for one in tensors:\n        log.info(one.dtype)\n    log.info(",
    ).replace('#^ cost cpu_ms=0.02; event graph_break reason="Logger not supported"', "#^ cost cpu_ms=0.02")
    script = script.replace("(one.dtype)", '(one.dtype)  #> event graph_break reason="-"; cost idle_ms=3')
    example = read_example(script.format(idle=0))
    (draft,) = GraphBreak().find(Context(example.profile, texts(example)))
    changed = apply(example.text, draft.fixes[0].edits)
    assert changed.count("if not torch.compiler.is_compiling():") == 2
