"""wasted-gradient where the recorded steps are a critic's, and a generator's gradients are cleared later."""

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
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)  #> site optimizer as=first shapes=[[1,64,1]]
{made}  #> site optimizer as=second shapes={shapes}
{before}
def improve(images):
    fake = generator(noise())
    #^ cost step_ms=20 device_ms=20 backward_ms=12; node aten.mm.default args=[%22,%20] shape=[32,64]
    score = critic(fake)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,1]
    of_critic.zero_grad()
    score.mean().backward()  #> pass roots=[%1] read=[%21] {fate}=[%20]
    of_critic.step()  #> use first

while True:
    for images in batches:
        improve(images)
{after}
"""
MADE = "of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)"
LOSS = "    critic(generator(noise())).mean().neg().backward()\n"
STEP = "    of_generator.step()\n"
ZERO, OF_MODEL = "    of_generator.zero_grad()\n", "    generator.zero_grad()\n"


def after(**parts: str) -> str | None:
    """The script with the edit; None where there is no finding."""
    known = {
        "made": MADE,
        "shapes": "[[1,64,64]]",
        "before": "",
        "fate": "left",
        "after": OF_MODEL + LOSS + STEP,
    }
    example = read_example(SCRIPT.format(**(known | parts)))
    drafts = [*WastedGradient().find(Context(example.profile, texts(example)))]
    return apply(example.text, drafts[0].fixes[0].edits) if drafts else None


FUNCTION = f"def turn(of_generator):\n{ZERO}{LOSS}{STEP}"
CLIP = "    torch.nn.utils.clip_grad_norm_(generator.parameters(), 1.0)\n"


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"after": ZERO + LOSS + STEP},
        {"after": ZERO + LOSS + CLIP + STEP},
        {"after": ZERO + LOSS + "    scaler.step(of_generator)\n"},
        {"after": ZERO + "    if turn % 5 == 0:\n    " + LOSS + "    " + STEP, "fate": "cleared"},
        {"before": FUNCTION, "after": "    turn(of_generator)\n"},
        {"before": "rate = torch.optim.lr_scheduler.StepLR(of_generator, 5)"},
        {"before": "if small:\n    of_generator = torch.optim.SGD(generator.parameters(), lr=0.01)"},
    ],
)
def test_cleared_before_the_step(parts: dict[str, str]) -> None:
    assert "with torch.no_grad():\n        fake = generator(noise())\n" in (after(**parts) or "")


@pytest.mark.parametrize(
    "parts",
    [
        {"after": LOSS + STEP + ZERO},  # they add up until then
        {"after": LOSS + ZERO + "    for of_generator in both:\n    " + STEP},
        {"after": ZERO + "    for _ in range(5):\n    " + LOSS + "    " + STEP},
        {"after": ZERO + "    improve(images)\n" + STEP},  # where the same pass is meant
        {"after": CLIP + ZERO + LOSS + STEP},
        {"after": "    print(generator.weight.grad)\n" + ZERO + LOSS + STEP},
        {"after": "    other.zero_grad()\n" + LOSS + STEP},
        {"after": ZERO + LOSS + STEP + LOSS + STEP, "before": "both = [of_critic, of_generator]"},
        {"after": ZERO + LOSS + STEP, "before": "turn(of_generator)"},  # a library's
        {"after": ZERO + LOSS + STEP, "before": "advance = of_generator.step"},
        {"after": ""},
        {"made": "make_optimizer()"},
        {"shapes": "[[1,32,64]]"},
        {"before": MADE + "  #> site optimizer as=third shapes=[[1,64,64]]"},
    ],
)
def test_what_may_read_them(parts: dict[str, str]) -> None:
    assert after(**parts) is None
