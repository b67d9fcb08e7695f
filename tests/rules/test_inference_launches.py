"""launch-bound in scripts that train nothing: the one model is compiled where it was made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import ABOUT, Change, CompiledCalls, Replace, Together
from warpline.rulekit import Context, Draft
from warpline.rules.launch_bound import LaunchBound
from warpline.text.edits import apply

CODE = """\
#> steps step_ms=40 device_busy_percent=20
class Ranker(nn.Module):
    def forward(self, x):
        x = self.first(x)
        #^ cost step_ms=18 device_ms=3 idle_ms=15 cpu_ms=18 launches=900
        return self.second(x)
        #^ cost step_ms=15 device_ms=3 idle_ms=12 cpu_ms=15 launches=900

ranker = Ranker(96).cuda().eval()
#^ {site}
with torch.inference_mode():
    for x in requests:
        answer = ranker(x)  #> cost step_ms=1 cpu_ms=1 calls={calls}
        kept = answer.softmax(-1).topk(5)
        #^ cost step_ms=6 device_ms=3 idle_ms={idle} cpu_ms=6 launches=20
"""


def found(
    idle: float = 3.0, site: str = "site module type=__main__.Ranker", calls: int = 1
) -> tuple[str, list[Draft]]:
    example = read_example(CODE.format(site=site, idle=idle, calls=calls))
    profile = example.profile
    lines = []
    for cost in profile.lines:
        inside = cost.line < 6
        function = "Ranker.forward" if inside else "<module>"
        calls = ((FILE, "Ranker.forward"),) if "ranker(x)" in example.text.splitlines()[cost.line - 1] else ()
        lines.append(replace(cost, function=function, called=calls))
    context = Context(replace(profile, lines=tuple(lines)), texts(example))
    return example.text, list(LaunchBound().find(context))


@pytest.mark.parametrize(("calls", "often"), [(1, "1"), (48, f"{ABOUT}48")])
def test_each_call_of_the_model_is_counted(calls: int, often: str) -> None:
    """Compiled code checks its guards in each; a planner may call a small model so often."""
    _, (draft,) = found(calls=calls)
    assert isinstance(draft.change, Replace)
    assert draft.change.options[1] == often
    assert isinstance(draft.change.otherwise, Together)
    assert [one.calls for one in draft.change.otherwise.changes if isinstance(one, CompiledCalls)] == [calls]


def promised(change: Change | None) -> set[tuple[str, int]]:
    assert isinstance(change, Replace)
    return set(change.places)


def test_the_model_is_compiled_where_it_is_made() -> None:
    text, (draft,) = found()
    (fix,) = draft.fixes
    assert "ranker = Ranker(96).cuda().eval()\nranker.compile()" in apply(text, fix.edits)
    lines = text.splitlines()
    assert {lines[line - 1].strip() for _, line in promised(draft.change)} == {
        "x = self.first(x)",
        "return self.second(x)",
    }
    assert draft.saving_ms == pytest.approx(27.0)


def test_what_the_model_does_not_launch_is_not_promised() -> None:
    _, (draft,) = found(idle=40.0)
    assert draft.change is None
    assert not draft.fixes


@pytest.mark.parametrize(
    "site", ["site module type=__main__.Ranker count=4", "site module type=__main__.Other"]
)
def test_of_several_models_or_one_made_elsewhere_nothing_is_said(site: str) -> None:
    _, (draft,) = found(site=site)
    assert draft.change is None


PLANNED = """\
#> steps step_ms=40 device_busy_percent=20
class Dynamics(nn.Module):
    def forward(self, s):
        return self.b(self.a(s))  #> cost step_ms=36 device_ms=6 idle_ms=30 cpu_ms=36 launches=900 calls=385

def plan(model, s):
    for _ in range(384):
        s = model(s)  #> cost step_ms=1 idle_ms=1 cpu_ms=1 calls=384
    return s

{made}
for _ in range(600):
    state = real(plan(learned, state))  #> cost step_ms=1 cpu_ms=1 calls=1
"""
TWO = """\
learned = Dynamics().cuda()
#^ site module type=__main__.Dynamics
real = Dynamics().cuda()
#^ site module type=__main__.Dynamics"""


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            "learned, real = Dynamics(), Dynamics()  #> site module type=__main__.Dynamics count=2",
            "s = model(s)",
        ),
        (TWO, "s = model(s)"),
        ("learned = real = Dynamics()  #> site module type=__main__.Dynamics", "learned = real = Dynamics()"),
    ],
)
def test_of_two_models_of_a_class_it_is_the_one_that_a_line_calls_most(made: str, line: str) -> None:
    text, draft = planned(made)
    assert text[draft.line - 1].strip() == line


@pytest.mark.parametrize(
    ("flags", "waits", "graph"),
    [("grad_enabled_in_step=false", 0, True), ("grad_enabled_in_step=true", 0, False),
     ("grad_enabled_in_step=false", 1, False)],
)  # fmt: skip
def test_what_computes_no_gradients_and_never_waits_may_be_replayed(
    flags: str, waits: int, graph: bool
) -> None:
    _, draft = planned(f"{TWO}\n#> flags {flags}", waits)
    assert not draft.fixes
    assert ("CUDA graph" in draft.message) == graph


def planned(made: str, waits: int = 0) -> tuple[list[str], Draft]:
    example = read_example(PLANNED.format(made=made))
    text = example.text.splitlines()
    forward, plan = (FILE, "Dynamics.forward"), (FILE, "plan")
    roles = {
        "return": ("Dynamics.forward", ()),
        "s = mo": ("plan", (forward,)),
        "state ": ("<module>", (plan, forward)),
    }
    lines = []
    for cost in example.profile.lines:
        function, called = roles[text[cost.line - 1].strip()[:6]]
        lines.append(replace(cost, function=function, called=called, syncs=float(waits)))
    context = Context(replace(example.profile, lines=tuple(lines)), texts(example))
    (draft,) = LaunchBound().find(context)
    return text, draft
