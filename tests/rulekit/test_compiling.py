"""The line that compiles the model goes where the model was made before the measured steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.report import Fix
from warpline.rulekit import Context, Refused
from warpline.rulekit.compiling import compile_model
from warpline.rulekit.training import training_steps
from warpline.text.edits import apply
from warpline.wire.births import Executed

#: A branch that is not taken wraps the model, as under a launcher; another model is read after the loop.
TEXT = """\
import torch
model = Net()
if ddp:
    model = DistributedDataParallel(model, device_ids=[0])
for batch in loader:
    loss = model(batch).mean()
    loss.backward()
model = torch.load("best.pt")
"""
#: The same with a switch of its own.
SWITCH = """\
import torch
model = Net()
if compile:
    model = torch.compile(model)
for batch in loader:
    loss = model(batch).mean()
    loss.backward()
"""


def _context(text: str, ran: tuple[int, ...], argv: tuple[str, ...] = ()) -> Context:
    example = read_example(text)
    profile = example.profile
    facts = replace(profile.facts, executed=Executed({FILE: ran}, complete=bool(ran)))
    manifest = replace(profile.manifest, argv=argv)
    return Context(replace(profile, facts=facts, manifest=manifest), texts(example))


def _fix(context: Context) -> Fix:
    return compile_model(context, training_steps(context)[0])


def test_below_the_statement_that_ran_last() -> None:
    context = _context(TEXT, (1, 2, 3, 5, 6, 7))
    after = apply(TEXT, _fix(context).edits)
    assert after.splitlines()[1:3] == ["model = Net()", "model.compile()"]


def test_a_run_that_does_not_say_what_ran_is_as_before() -> None:
    context = _context(TEXT, ())
    assert apply(TEXT, _fix(context).edits).splitlines()[-1] == "model.compile()"


def test_a_switch_of_the_script_is_named() -> None:
    context = _context(SWITCH, (1, 2, 3, 5, 6, 7))
    with pytest.raises(Refused, match=r"did not run: `torch\.compile\(model\)` \(line \d+, a branch of `if"):
        _fix(context)


@pytest.mark.parametrize(
    ("test", "argv", "said"),
    [
        ("compile", ("config.py", "--compile=False"), r"; the command line passes `--compile=False`$"),
        ("args.use_compile and fast", ("--no-use-compile",), r"passes `--no-use-compile`$"),
        ("not args.no_compile", ("-b", "8", "--no_compile"), r"passes `--no_compile`$"),
        ("compile", ("compile", "--compiler=x"), r"`if compile`\)$"),
    ],
)
def test_an_option_that_switches_it_off_is_named(test: str, argv: tuple[str, ...], said: str) -> None:
    context = _context(SWITCH.replace("if compile", f"if {test}"), (1, 2, 3, 5, 6, 7), argv)
    with pytest.raises(Refused, match=said):
        _fix(context)


#: A model for each fold, and steps in loops within.
FOLDS = """\
import torch
for fold in range(4):
    {made}
    for epoch in range(3):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
"""


def test_a_model_that_is_made_in_a_loop_around_the_steps() -> None:
    text = FOLDS.format(made="model = Net()")
    after = apply(text, _fix(_context(text, ())).edits)
    assert after.splitlines()[2:4] == ["    model = Net()", "    model.compile()"]


@pytest.mark.parametrize("made", ["model, optimizer = prepare(fold)", "model = models[fold]"])
def test_no_line_above_the_loop_that_gives_the_model_its_value(made: str) -> None:
    text = FOLDS.format(made=made)
    with pytest.raises(Refused, match="the loop gives `model` a value"):
        _fix(_context(text, ()))


#: An object of no module's class is called before the model.
MASKED = """\
import torch
class Masks{bases}:
    def __call__(self, batch):
        return batch * (torch.rand_like(batch) < 0.9)
net = Net()
{name} = Masks()
for batch in loader:
    batch = {name}(batch)
    loss = net(batch).mean()
    loss.backward()
"""


@pytest.mark.parametrize("name", ["masks", "model_masks"])
def test_an_object_that_is_no_module_is_not_the_model(name: str) -> None:
    text = MASKED.format(bases="", name=name)
    after = apply(text, _fix(_context(text, ())).edits)
    assert "net.compile()" in after and f"{name}.compile()" not in after


def test_an_object_of_a_class_with_a_base_may_be_one() -> None:
    text = MASKED.format(bases="(Layer)", name="model_masks")
    after = apply(text, _fix(_context(text, ())).edits)
    assert "model_masks.compile()" in after


#: Several attributes get their values in one statement.
SESSION = """\
import torch
class Session:
    def __init__(self, net, hooks):
        {made}
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def step(self, batch):
        loss = self.net(batch).mean()
        loss.backward()
        self.opt.step()
"""


@pytest.mark.parametrize(
    ("made", "offered"),
    [
        ("self.net, self.hooks = net, hooks", True),
        ("self.hooks, self.net = hooks, net", True),
        ("self.net, self.hooks = both(net)", False),
        ("self.net, *self.hooks = net, hooks, more", False),
        ("self.other, self.hooks = net, hooks", False),
    ],
)
def test_a_model_that_is_assigned_beside_others(made: str, offered: bool) -> None:
    text = SESSION.format(made=made)
    context = _context(text, ())
    if offered:
        assert f"{made}\n        self.net.compile()\n" in apply(text, _fix(context).edits)
    else:
        with pytest.raises(Refused, match="neither the creation of the model nor a loop"):
            _fix(context)


#: A model whose class, or one that it inherits from, has methods of its own with names of nn.Module's.
OWN = """\
from torch import nn
class Base(nn.Module):
    def compile(self, loss, optimizer):
        self.loss = loss
class Net({base}):
    def forward(self, x):
        return x
net = {made}  #> site module type=__main__.Net
net.compile("mse", "adam")
for batch in loader:
    loss = net(batch).mean()
    loss.backward()
def load():
    return Net() if fast else None
"""


@pytest.mark.parametrize("made", ["Net()", "Net().cuda()", "load()"])
def test_a_compile_of_the_script_s_own_is_not_called(made: str) -> None:
    text = OWN.format(base="Base", made=made)
    after = apply(text, _fix(_context(text, ())).edits)
    assert "\nnn.Module.compile(net)\nnet.compile(" in after


def test_a_compile_of_another_class_s_is_no_matter() -> None:
    text = OWN.format(base="nn.Module", made="Net()").replace('net.compile("mse", "adam")\n', "")
    assert "\nnet.compile()\n" in apply(text, _fix(_context(text, ())).edits)


def test_options_of_such_a_call() -> None:
    text = OWN.format(base="Base", made="Net()")
    context = _context(text, ())
    fix = compile_model(context, training_steps(context)[0], graphs=True)
    assert 'nn.Module.compile(net, mode="reduce-overhead")\n' in apply(text, fix.edits)
