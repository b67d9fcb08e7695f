"""wasted-gradient: `backward()` for the parameters that the next optimizer takes a step with."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.wasted_gradient import WastedGradient
from warpline.text.edits import apply

SCRIPT = """\
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true; tensor %21 shape=[64,1] parameter=true
#> tensor %24 shape=[3,3] parameter=true
{made}
of_actor = torch.optim.SGD(actor.parameters(), lr=0.1)  #> site optimizer as=second shapes={shapes}
def update(states, actions, targets):
    error = (critic(states, actions) - targets).square().mean()
    #^ cost step_ms=9 device_ms=9 backward_ms=6
    #^ node aten.mm.default args=[%22,%21] shape=[32,1]
    of_critic.zero_grad()
    error.backward()  #> pass roots=[%0] read=[%21]
    of_critic.step()  #> use first
    chosen = actor(states)
    #^ cost step_ms=9 device_ms=9 backward_ms=6; node aten.mm.default args=[%23,%20] shape=[32,64]
    value = critic(states, chosen)
    #^ cost step_ms=9 device_ms=9 backward_ms=6; op aten::mm phase=backward count=2 device_ms=6
    #^ node aten.mm.default args=[%1,%21] shape=[32,1]
    {loss}.backward({given})  #> pass roots=[%2] read={read} cleared=[%21] {more}
    {step}  #> use second; node aten.add_.Tensor args=[%20,%20] shape=[64,64]
"""
MADE = (
    "of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)  #> site optimizer as=first shapes=[[1,64,1]]"
)
OWN = 'p for group in of_actor.param_groups for p in group["params"]'


def after(**parts: str) -> str | None:
    """The script with the edit; None where none is offered."""
    known = {
        "made": MADE,
        "read": "[%20]",
        "shapes": "[[1,64,64]]",
        "given": "",
        "more": "",
        "step": "of_actor.step()",
    }
    example = read_example(SCRIPT.format(**({"loss": "(-value).mean()"} | known | parts)))
    (draft,) = WastedGradient().find(Context(example.profile, texts(example)))
    assert draft.fixes or "requires_grad_(False)" in draft.message
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


def test_the_pass_is_for_what_the_optimizer_has() -> None:
    assert f"(-value).mean().backward(inputs=[{OWN}])" in (after() or "")
    assert f"retain_graph=False, inputs=[{OWN}])" in (after(given="retain_graph=False") or "")


def test_a_scaler_steps() -> None:
    found = after(loss="scaler.scale(-value).mean()", step="scaler.step(of_actor)")
    assert f"scaler.scale(-value).mean().backward(inputs=[{OWN}])" in (found or "")


def test_a_parameter_that_was_written_to_is_one() -> None:
    assert f"inputs=[{OWN}]" in (after(read="[%20,%3]") or "")


def test_parameters_that_got_no_gradient_may_be_frozen() -> None:
    assert f"inputs=[{OWN} if p.requires_grad]" in (after(shapes="[[1,64,64],[1,8]]") or "")


@pytest.mark.parametrize(
    "parts",
    [
        {"shapes": "[[1,32,64]]"},  # it has others
        {"more": "left=[%24]"},  # gradients that add up
        {"given": "inputs=known"},
        {"given": "**options"},
        {"step": "for of_actor in [of_actor]: of_actor.step()"},
        {"step": "of_actor().step()"},
        {"made": MADE + "\ncheckpoint(net, x)"},
    ],
)
def test_a_pass_that_may_be_for_more(parts: dict[str, str]) -> None:
    assert after(**parts) is None
