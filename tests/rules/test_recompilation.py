"""What a recompilation's advice says, and where it stands among classes of one file."""

from __future__ import annotations

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named

SCRIPT = """\
import torch

class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.age = 0

class Outer(torch.nn.Module):
    age = 0
    def forward(self, x):
        #^ cost step_ms=50; event recompile count=6 milliseconds=9000 reason="{reason}"
        return x * self.age

compiled = torch.compile(Outer())  #> site compile mode=default
"""


def drafted(reason: str) -> Draft:
    example = read_example(SCRIPT.format(reason=reason))
    rule = rule_named("recompilation")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    return draft


def test_the_attribute_is_that_of_the_class_whose_code_it_is() -> None:
    assert drafted("0/1: self.age == 1").line == 9
    assert drafted("0/1: self.inner.age == 1").line == 6


def test_the_option_is_named_where_dynamo_names_it() -> None:
    hint = "(HINT: torch._dynamo.config.allow_unspec_int_on_nn_module = True)"
    assert "allow_unspec" in drafted(f"0/1: self.age == 1 {hint}").message
    assert "allow_unspec" not in drafted("0/1: self.age == 0.5").message
