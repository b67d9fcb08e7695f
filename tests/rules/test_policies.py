"""A policy acts many times before it is trained once: only the calls that act are put under no_grad."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.grad_in_eval import GradInEval

METHOD = """\
#> flags grad_enabled_in_step=true
import torch
class Policy:
    def scores(self, state):
        hidden = self.lstm(state)  #> cost step_ms=9 cpu_ms=8; op aten::lstm count=20 cpu_ms=8
        return self.head(hidden)

def main():
    while not done:
        scores = policy.scores(state)  #> cost step_ms=1
        state = env.step(scores.argmax().item())
    scores = policy.scores(states)  #> cost step_ms=1
    scores.sum().backward()  #> cost step_ms=9 backward_ms=9; op aten::mm phase=backward
"""
#: Line, after the first one is taken off -> (function, functions that it calls, nodes, of these unused)
OF_METHOD = {
    4: ("Policy.scores", (), 64, 60),
    9: ("main", ("Policy.scores",), 60, 60),
    11: ("main", ("Policy.scores",), 4, 0),
    12: ("main", (), 0, 0),
}
NESTED = """\
#> flags grad_enabled_in_step=true
import torch
def policy(state):
    logits = net(state)  #> cost step_ms=9 cpu_ms=8; op aten::linear count=20 cpu_ms=8
    return Categorical(logits=logits)

def act(state):
    return policy(state).sample().item()  #> cost step_ms=1

def epoch():
    for _ in range(5000):
        action = act(state)  #> cost step_ms=1
    loss = policy(states).log_prob(actions).mean()  #> cost step_ms=1
    loss.backward()  #> cost step_ms=9 backward_ms=9; op aten::mm phase=backward

for _ in range(50):
    loss = epoch()  #> cost step_ms=1
"""
OF_NESTED = {
    3: ("policy", (), 64, 60),
    7: ("act", ("policy",), 60, 60),
    11: ("epoch", ("act",), 60, 60),
    12: ("epoch", ("policy",), 4, 0),
    13: ("epoch", (), 0, 0),
    16: ("<module>", ("epoch",), 64, 60),
}
TWICE = """\
#> flags grad_enabled_in_step=true
import torch
def both(net, old, new):
    return [net(x) for x in (old, new)]  #> cost step_ms=9 cpu_ms=8; op aten::linear count=20 cpu_ms=8

for old, new in pairs:
    a, b = both(net, old, new)  #> cost step_ms=1
    b.sum().backward()  #> cost step_ms=9 backward_ms=9; op aten::mm phase=backward
"""
OF_TWICE = {3: ("both", (), 64, 60), 6: ("<module>", ("both",), 64, 60), 7: ("<module>", (), 0, 0)}
PSEUDO = """\
#> flags grad_enabled_in_step=true
import torch
def guess(x):
    scores = x.float()
    best = teacher(scores).max(-1)  #> cost step_ms=9 cpu_ms=8; op aten::linear count=20 cpu_ms=8
    return best.indices, best.values.detach()

for x, y in pairs:
    first, sure = guess(x)  #> cost step_ms=1
    student(y, first).backward()  #> cost step_ms=9 backward_ms=9; op aten::mm phase=backward
"""
OF_PSEUDO = {4: ("guess", (), 20, 20), 8: ("<module>", ("guess",), 20, 20), 9: ("<module>", (), 9, 0)}
OF_ALSO = {
    4: ("guess", (), 40, 40),
    8: ("<module>", ("guess",), 20, 20),
    9: ("<module>", ("guess",), 20, 20),
    10: ("<module>", (), 9, 0),
}


@pytest.mark.parametrize(
    ("code", "calls", "line", "edited"),
    [
        (METHOD, OF_METHOD, 9, True),
        (NESTED, OF_NESTED, 7, True),
        (TWICE, OF_TWICE, 6, False),
        (PSEUDO, OF_PSEUDO, 4, True),
        (
            PSEUDO.replace("first, sure", "also = guess(y)  #> cost step_ms=1\n    first, sure"),
            OF_ALSO,
            8,
            True,
        ),
    ],
    ids=["method", "nested", "one call for both", "in a helper", "in a helper of two"],
)
def test_lines_that_are_trained_as_well_keep_their_graph(
    code: str, calls: dict[int, tuple[str, tuple[str, ...], int, int]], line: int, edited: bool
) -> None:
    example = read_example(code)
    lines = tuple(
        replace(
            cost,
            function=calls[cost.line][0],
            called=tuple((FILE, name) for name in calls[cost.line][1]),
            nodes=float(0 if calls[cost.line][1] else calls[cost.line][2]),
            unused_nodes=float(0 if calls[cost.line][1] else calls[cost.line][3]),
            total_nodes=float(calls[cost.line][2]),
            total_unused_nodes=float(calls[cost.line][3]),
        )
        for cost in example.profile.lines
    )
    (draft,) = GradInEval().find(Context(replace(example.profile, lines=lines), texts(example)))
    assert draft.line == line
    written = [edit.text for fix in draft.fixes for edit in fix.edits]
    assert any("with torch.no_grad():" in text for text in written) == edited
    assert edited or "put only the calls that are not trained" in draft.message
