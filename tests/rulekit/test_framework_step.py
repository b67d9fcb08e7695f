"""The training step of a script whose loss a framework sends back."""

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context
from warpline.rulekit.compiling import compile_model
from warpline.rulekit.inference import steps
from warpline.rulekit.model_lines import about_model
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.edits import Edits, Refused
from warpline.text.edits import apply


def context_of(code: str) -> Context:
    profile = read_project({"train.py": code}).profile
    return Context(profile, profile.sources.get)


def step_of(code: str) -> TrainingStep:
    return training_steps(context_of(code))[0]


def compiled(code: str) -> str:
    context = context_of(code)
    step = training_steps(context)[0]
    return apply(step.source.text, compile_model(context, step).edits)


ACCELERATE = """
accelerator = Accelerator()
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for ids in loader:
    with accelerator.accumulate(model):
        loss = model(input_ids=ids, labels=ids).loss
        total += loss.item()
        accelerator.backward(loss)
        optimizer.step()
"""

LIGHTNING = """
class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet50()
        self.width = 3

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        {step}
"""

STEPS = [
    "logits = self.net(x)\n        loss = F.cross_entropy(logits, y)\n        return loss",
    "logits = self(x)\n        loss = F.cross_entropy(logits, y)\n        return {'loss': loss, 'n': 1}",
    "return F.cross_entropy(self(x), y)",
    "loss = self.common(x, y)\n        self.log('loss', loss)\n        return loss\n\n"
    "    def common(self, x, y):\n        return F.cross_entropy(self.net(x), y)",
    "return self.common(x, y)\n\n"
    "    def common(self, x, y):\n        out = self.net(x)\n        return F.cross_entropy(out, y)",
    "loss = self.criterion(self(x), y)\n        return loss",
    "loss = F.cross_entropy(self.net(x), y)\n        self.manual_backward(loss)",
]


def test_a_loss_that_accelerate_sends_back() -> None:
    step = step_of(ACCELERATE)
    assert step.source.code(step.loss) == "loss"
    assert step.handed_over
    assert step.source.code(step.forward[0]) == "loss = model(input_ids=ids, labels=ids).loss"
    assert "model = GPT2LMHeadModel(config)\nmodel.compile()\n" in compiled(ACCELERATE)


def test_a_loss_with_a_gradient_of_its_own_is_the_loss() -> None:
    step = step_of("for x in loader:\n    loss = model(x)\n    loss.backward(torch.ones(3))\n")
    assert step.source.code(step.loss) == "loss"
    assert not step.handed_over


@pytest.mark.parametrize("written", STEPS)
def test_a_step_that_returns_its_loss(written: str) -> None:
    text = compiled(LIGHTNING.replace("{step}", written))
    assert "self.net = torchvision.models.resnet50()\n        self.net.compile()\n" in text


def test_several_modules_are_the_lightning_module_itself() -> None:
    code = LIGHTNING.replace("{step}", "return F.cross_entropy(self(x), y)").replace(
        "return self.net(x)", "return self.head(self.body(x))"
    )
    step = step_of(code)
    edits = Edits(step.source)
    about_model(step, edits, "{model}.to(memory_format=torch.channels_last)")
    text = apply(step.source.text, edits.fix("", "safe").edits)
    assert "self.width = 3\n        self.to(memory_format=torch.channels_last)\n" in text


def test_a_module_that_is_handed_in() -> None:
    code = LIGHTNING.replace("torchvision.models.resnet50()", "net").replace("(self):", "(self, net):")
    text = compiled(code.replace("{step}", "return self.net(x).mean()"))
    assert "self.net = net\n        self.net.compile()\n" in text


def test_a_step_that_calls_modules_one_by_one_is_left_alone() -> None:
    with pytest.raises(Refused, match="not found"):
        compiled(LIGHTNING.replace("{step}", "return (self.body(self.stem(x)) - self.other(x)).mean()"))


INFERENCE = """
import torch
import timm
from torchvision import models

{made}
for x in batches:
    with torch.no_grad():
        out = model(x)
        #^ cost step_ms=10 device_ms=9; inside file=/lib/site-packages/timm/vit.py line=4 step_ms=9
    found.append(out.argmax(1))
"""


@pytest.mark.parametrize(
    "made", ["model = timm.create_model('resnet50').cuda().eval()", "model = models.resnet50()"]
)
def test_a_library_s_model_that_only_infers(made: str) -> None:
    project = read_project({"train.py": INFERENCE.replace("{made}", made)})
    context = Context(project.profile, project.texts.get)
    (step,) = steps(context)
    assert [step.source.code(one) for one in step.forward] == ["out = model(x)"]
    text = apply(step.source.text, compile_model(context, step).edits)
    assert f"{made}\nmodel.compile()\n" in text


@pytest.mark.parametrize("made", ["model = Net()", "model = diffusers.DDPMPipeline(unet, scheduler)"])
def test_what_may_be_no_module_is_left_alone(made: str) -> None:
    project = read_project({"train.py": INFERENCE.replace("{made}", made)})
    assert steps(Context(project.profile, project.texts.get)) == []
