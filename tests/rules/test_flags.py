"""A flag that is written elsewhere: the finding stands where its value is, and the edit changes it there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder
from warpline.wire.run import Site

CLEARED = "#> cost step_ms=3 device_ms=3; op aten::_foreach_zero_ count=1 device_ms=3"
CLEARING = [
    f"""\
HOW = dict(
    set_to_none=False,  # here
)
for batch in loader:
    optimizer.zero_grad(**HOW)  {CLEARED}
    model(batch).backward()
""",
    f"""\
CONFIG = {{"lr": 1e-3, "clear": {{
    "set_to_none": False,  # here
}}}}

class Loop:
    def __init__(self, model, **clear):
        self.model, self.clear = model, clear

    def step(self, batch):
        self.optimizer.zero_grad(**self.clear)  {CLEARED}
        self.model(batch).backward()

loop = Loop(model, **CONFIG["clear"])
""",
    f"""\
from dataclasses import dataclass

@dataclass
class Config:
    drop_gradients: bool = False  # here

def step(config, batch):
    optimizer.zero_grad(set_to_none=config.drop_gradients)  {CLEARED}
    model(batch).backward()
""",
    f"""\
from functools import partial

clear = partial(optimizer.zero_grad, set_to_none=False)  # here
for batch in loader:
    clear()  {CLEARED}
    model(batch).backward()
""",
    f"""\
FLAGS = {{}}
FLAGS["set_to_none"] = False  # here
for batch in loader:
    optimizer.zero_grad(**FLAGS)  {CLEARED}
    model(batch).backward()
""",
]

HEAD = "#> device memory_bytes=80000000000\n#> memory peak_bytes=9000000000 free_bytes=60000000000\n"
CALLED = "#> cost step_ms=60 device_ms=60 recompute_ms=15; op CheckpointFunction count=12"
AGAIN = "op aten::mm phase=recompute device_ms=9 count=24 shapes=[[8192,1024],[1024,4096]] dtypes=float,float"
CHECKPOINTS = [
    f"""\
class Config:
    rematerialise: bool = True  # here

class Stack(nn.Module):
    def __init__(self, dim, remat):
        self.norm, self.remat = nn.LayerNorm(dim), remat

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x) if self.remat else layer(x)  {CALLED}; {AGAIN}
        return self.norm(x)

encoder = Stack(64, config.rematerialise)
decoder = Stack(32, config.rematerialise)
""",
    f"""\
OPTIONS = {{"dim": 64}}
OPTIONS["recompute"] = True  # here

class Model(nn.Module):
    def __init__(self, options):
        self.run = self.thrifty if options["recompute"] else self.plain

    def thrifty(self, x):
        return checkpoint(self.block, x)  {CALLED}; {AGAIN}

    def plain(self, x):
        return self.block(x)
""",
    f"""\
KEEP = False  # here

def forward(self, x):
    if KEEP:
        x = self.block(x)
    else:
        x = checkpoint(self.block, x)  {CALLED}; {AGAIN}
    return x
""",
    f"""\
class Model(nn.Module):
    checkpointed = True  # here

    def forward(self, x):
        if not (self.checkpointed and self.training):
            return self.block(x)
        return checkpoint(self.block, x)  {CALLED}; {AGAIN}
""",
    f"""\
SAVE = True  # here

def forward(self, x):
    # Too many operators at one line: those that take no time are not kept.
    return checkpoint(self.block, x) if SAVE else self.block(x)  {CALLED.partition(";")[0]}; {AGAIN}
""",
]
#: A class has its flag off, and the only assignment from outside has it on.
GIVEN = f"""\
class Plan:
    recompute = True  # here

class Block(nn.Module):
    recompute = False

    def forward(self, x):
        if self.recompute and self.training:
            return checkpoint(self.update, x)  {CALLED}; {AGAIN}
        return self.update(x)

def build(plan):
    for block in blocks:
        block.recompute = plan.recompute

build(Plan())
"""
CHECKPOINTS += [
    GIVEN,
    GIVEN.replace("  # here", "").replace("plan.recompute", "True  # here"),
]
CHECKPOINTS += [
    f"""\
class Saving(nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x)  {CALLED}; {AGAIN}

class Config:
    lean = True  # here

blocks = [{wrapped}]
"""
    for wrapped in (
        "Saving(block) if Config.lean else block for block in blocks",
        "block if not Config.lean else Saving(block) for block in blocks",
    )
]
CHECKPOINTS += [
    f"""\
from functools import partial
from torch.utils.checkpoint import checkpoint

LEAN = True  # here
passes = [partial(checkpoint, block, use_reentrant=False) if LEAN else block for block in blocks]
for go in passes:
    x = go(x)  {CALLED}; {AGAIN}
""",
    f"""\
from torch.utils.checkpoint import checkpoint

LEAN = True  # here
run = checkpoint if LEAN else plain
for block in blocks:
    x = run(block, x)  {CALLED}; {AGAIN}
""",
    f"""\
class Saving(nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x)  {CALLED}; {AGAIN}

LEAN = True  # here
if LEAN:
    model.blocks = nn.ModuleList(Saving(block) for block in model.blocks)
""",
]
#: Nothing of these is a flag that is on: the finding stands at the call.
UNDECIDED = [
    f"""\
DEEP = True  # it chooses another model

class Deep(nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x)  {CALLED}; {AGAIN}

model = Deep(64) if DEEP else Shallow(64)
if DEEP:
    other = Deep(64)
""",
    f"""\
def forward(self, x, save):
    return checkpoint(self.block, x) if save else self.block(x)  {CALLED}; {AGAIN}
""",
    f"""\
SAVE = False

def forward(self, x):
    if SAVE or x.requires_grad:
        x = checkpoint(self.block, x)  {CALLED}; {AGAIN}
    return x
""",
    f"""\
SAVE = False  # the command line may set it

def forward(self, x):
    return checkpoint(self.block, x) if SAVE else self.block(x)  {CALLED}; {AGAIN}
""",
    f"""\
class Small:
    save = True

class Large:
    save = False

def forward(config, x):
    return checkpoint(block, x) if config.save else block(x)  {CALLED}; {AGAIN}
""",
]

LIBRARY = """\
from argparse import ArgumentParser

parser = ArgumentParser()
parser.add_argument("--lean", default=True, type=bool)  # here
args = parser.parse_args([])
{switch}
for images, classes in batches:
    loss = criterion(net(images), classes)  {run}
"""
CHECKPOINTS += [
    LIBRARY.format(switch=switch, run=f"{CALLED}; {AGAIN}")
    for switch in (
        "net.set_grad_checkpointing(args.lean)",
        "net.set_grad_checkpointing(enable=args.lean)",
        "if args.lean:\n    net.set_grad_checkpointing()",
        "if args.lean:\n    net.set_grad_checkpointing(True)",
    )
]


def found(rule_name: str, code: str) -> tuple[str, Draft]:
    example = read_example(code)
    rule = rule_named(rule_name)
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    return example.text, draft


def _marked(text: str) -> int:
    return next(at for at, line in enumerate(text.split("\n"), 1) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("code", CLEARING)
def test_gradients_are_reset_where_the_flag_is_written(code: str) -> None:
    text, draft = found("zeroed-gradients", code)
    assert draft.line == _marked(text)
    old, new = (one.split("\n")[draft.line - 1] for one in (text, apply(text, draft.fixes[0].edits)))
    assert new == old.replace("False", "True")


@pytest.mark.parametrize("code", CHECKPOINTS)
def test_checkpointing_is_switched_off_where_the_flag_is_written(code: str) -> None:
    text, draft = found("needless-checkpointing", HEAD + code)
    assert draft.line == _marked(text)
    old, new = (one.split("\n")[draft.line - 1] for one in (text, apply(text, draft.fixes[0].edits)))
    assert new != old and new in (old.replace("True", "False"), old.replace("False", "True"))


@pytest.mark.parametrize(
    ("switch", "after"),
    [
        ("net.set_grad_checkpointing()", ""),
        ("net.set_grad_checkpointing(True)", ""),
        ("for one in (net, other):\n    one.set_grad_checkpointing()", None),
        ("net.set_grad_checkpointing()\nother.set_grad_checkpointing()", None),
    ],
)
def test_a_library_s_switch_is_left_out(switch: str, after: str | None) -> None:
    text, draft = found(
        "needless-checkpointing", HEAD + LIBRARY.format(switch=switch, run=f"{CALLED}; {AGAIN}")
    )
    fixed = [apply(text, fix.edits) for fix in draft.fixes]
    if after is None:
        assert not any(one.count("set_grad_checkpointing") == 1 for one in fixed)
    else:
        assert text.split("\n")[draft.line - 1] == switch
        assert fixed == [text.replace(switch + "\n", after)]


def test_blocks_that_are_handed_to_checkpoint_are_taken_as_they_are() -> None:
    code = f"""\
import functools
from torch.utils import checkpoint

passes = [functools.partial(checkpoint.checkpoint, block, use_reentrant=False) for block in blocks]
for go in passes:
    x = go(x)  {CALLED}; {AGAIN}
"""
    text, draft = found("needless-checkpointing", HEAD + code)
    assert draft.line == text.split("\n").index(code.split("\n")[3]) + 1
    assert "passes = [block for block in blocks]" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    ("wrapped", "after"),
    [
        ("blocks = [checkpoint_wrapper(block) for block in blocks]", "blocks = [block for block in blocks]"),
        ("apply_activation_checkpointing(model, check_fn=is_block)", ""),
    ],
)
def test_blocks_that_torch_wraps_are_taken_as_they_are(wrapped: str, after: str) -> None:
    module = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
    code = f"""\
from {module} import apply_activation_checkpointing, checkpoint_wrapper

{wrapped}
for block in blocks:
    x = block(x)  {CALLED}; {AGAIN}
"""
    text, draft = found("needless-checkpointing", HEAD + code)
    assert text.split("\n")[draft.line - 1] == wrapped
    edited = apply(text, draft.fixes[0].edits)
    assert wrapped not in edited and after in edited


RECORDED = f"""\
PRESETS = {{"tiny": dict(dim=96, recompute=True)}}

class Saving:
    recompute = False

    @property
    def call(self):
        return partial(checkpoint, use_reentrant=False) if self.recompute else plain

class Model(Saving, nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x) if self.recompute else self.block(x)  {CALLED}; {AGAIN}
"""


#: A helper that gets the flag, and the same with the script's copy of torch's function.
HELPED = f"""\
PRESETS = {{"tiny": dict(dim=96, recompute=True)}}

def thrifty(work, x, lean):
    if lean:
        return checkpoint(work, x)  {CALLED}; {AGAIN}
    return work(x)

class Block(nn.Module):
    def __init__(self, dim, recompute=False):
        self.lean = recompute

    def forward(self, x):
        return thrifty(self.inner, x, self.lean)

class Head(nn.Module):
    def __init__(self, dim, recompute=False):
        self.lean = recompute

    def forward(self, x):
        return thrifty(self.inner, x, lean=self.lean)
"""
OWN = HELPED.replace("checkpoint(work", "CheckpointFunction.apply(work")


def recorded(code: str, value: bool, kind: str = "entry") -> tuple[str, int, Draft]:
    """The text, the line where the run saw that the flag is written, and what is found."""
    example = read_example(HEAD + code)
    line, text = next(one for one in enumerate(example.text.split("\n"), 1) if "PRESETS" in one[1])
    holder = Holder(
        kind, FILE, line, text.index("True"), "--recompute" if kind == "command line" else "recompute"
    )
    site = Site("module", FILE, 1, "<module>", arguments=(Argument("recompute", value, True, holder),))
    facts = replace(example.profile.facts, sites=(site,))
    rule = rule_named("needless-checkpointing")
    assert rule is not None
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, line, draft


@pytest.mark.parametrize("value", [True, False])
def test_the_value_that_a_module_was_made_with_is_the_flag(value: bool) -> None:
    text, line, draft = recorded(RECORDED, value)
    assert (draft.line == line) is value
    if value:
        assert "dict(dim=96, recompute=False)" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize("code", [HELPED, OWN])
def test_a_helper_gets_the_flag_of_a_module(code: str) -> None:
    text, line, draft = recorded(code, True)
    assert draft.line == line
    assert "dict(dim=96, recompute=False)" in apply(text, draft.fixes[0].edits)


def test_what_the_command_line_passes_is_changed_there() -> None:
    _, line, draft = recorded(OWN, True, "command line")
    assert draft.line != line and not draft.fixes
    assert "the command line passes `--recompute`: change it there" in draft.message


@pytest.mark.parametrize("given", ["x.requires_grad", "True", "self.other"])
@pytest.mark.parametrize("code", [HELPED, OWN])
def test_a_helper_that_gets_it_otherwise_too_keeps_it(code: str, given: str) -> None:
    text, line, draft = recorded(code.replace("lean=self.lean", f"lean={given}"), True)
    assert draft.line != line
    assert all("recompute=True" in apply(text, fix.edits) for fix in draft.fixes)


@pytest.mark.parametrize("code", UNDECIDED)
def test_without_one_flag_it_stands_at_the_call(code: str) -> None:
    text, draft = found("needless-checkpointing", HEAD + code)
    assert "checkpoint(" in text.split("\n")[draft.line - 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("build(Plan())", "build(Plan(recompute=True))"),
        ("build(Plan())", "blocks[0].recompute = False"),
        ("recompute = True  # here", "recompute = False  # what sets it is not known"),
        ("build(Plan())", "class Other:\n    recompute = True"),
    ],
)
def test_a_flag_that_may_be_given_otherwise_is_not_edited(old: str, new: str) -> None:
    assert old in GIVEN
    text, draft = found("needless-checkpointing", HEAD + GIVEN.replace(old, new))
    assert "checkpoint(" in text.split("\n")[draft.line - 1]
    assert "off as it is written" in draft.message


ENABLED = f"""\
class Stack(nn.Module):
    def __init__(self):
        self.saving = False

    def save_memory(self):
        '''Computes activations again.'''
        self.saving = True

    def keep_all(self):
        self.saving = False

    def forward(self, x):
        for block in self.blocks:
            if self.saving and self.training:
                x = checkpoint(block, x)  {CALLED}; {AGAIN}
            else:
                x = block(x)
        return x

def train(args):
    stack = Stack()
    stack.save_memory()  # here
    stack.train()
"""


def test_a_method_that_switches_checkpointing_on_is_not_called() -> None:
    text, draft = found("needless-checkpointing", HEAD + ENABLED)
    assert draft.line == _marked(text)
    assert apply(text, draft.fixes[0].edits) == text.replace("    stack.save_memory()  # here\n", "")


def test_an_option_that_has_it_called_is_switched_off() -> None:
    code = ENABLED.replace("    stack.save_memory()  # here", "    if SAVE:\n        stack.save_memory()")
    text, draft = found("needless-checkpointing", f"{HEAD}SAVE = True  # here\n{code}")
    assert draft.line == _marked(text)
    assert "SAVE = False" in apply(text, draft.fixes[0].edits)


APPLIED = f"""\
def saved(block, x):
    if getattr(block, "lean", False):
        return checkpoint(block, x)  {CALLED}; {AGAIN}
    return block(x)

{{setter}}
def train(args):
    stack = Stack()
    {{call}}
    fit(stack)
"""
_NESTED = """\
def go_lean(stack):
    assert isinstance(stack, nn.Module)

    def each(block):
        block.lean = True

    stack.apply(each)
"""
_GIVEN = """\
class Lean:
    def go_lean(self):
        if not self.can:
            raise ValueError
        self.apply(partial(self._set, value=True))

    def _set(self, block, value=False):
        if hasattr(block, "lean"):
            block.lean = value
"""


@pytest.mark.parametrize(
    ("setter", "call"), [(_NESTED, "go_lean(stack)"), (_GIVEN, "stack.go_lean()")], ids=["nested", "given"]
)
def test_a_function_applied_to_all_modules_switches_checkpointing_on(setter: str, call: str) -> None:
    text, draft = found(
        "needless-checkpointing", HEAD + APPLIED.format(setter=setter, call=f"{call}  # here")
    )
    assert draft.line == _marked(text)
    assert f"    {call}" not in apply(text, draft.fixes[0].edits)
    asked = APPLIED.format(setter=setter, call=f"if LEAN:\n        {call}")
    text, draft = found("needless-checkpointing", f"{HEAD}LEAN = True  # here\n{asked}")
    assert draft.line == _marked(text)
    assert "LEAN = False" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    stack.apply(each)", "    stack.apply(each)\n    stack.train()"),
        ("        block.lean = True", "        block.lean = True\n        count(block)"),
    ],
)
def test_a_function_that_does_more_than_switch_it_on_is_called(old: str, new: str) -> None:
    code = HEAD + APPLIED.format(setter=_NESTED.replace(old, new), call="go_lean(stack)")
    text, draft = found("needless-checkpointing", code)
    assert "checkpoint(" in text.split("\n")[draft.line - 1]
    assert "go_lean(stack)" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    stack.train()", "    stack.save_memory()"),  # of two calls one is not enough
        ("    stack.train()", "    stack.saving = True"),
        ("        self.saving = True", "        self.saving = True\n        self.eval()"),
        ("        self.saving = False\n\n    def save", "        self.saving = saving\n\n    def save"),
        ("    stack.save_memory()", "    stack = stack.save_memory()"),
    ],
)
def test_a_method_that_does_more_or_is_not_alone_is_called(old: str, new: str) -> None:
    assert old in ENABLED
    text, draft = found("needless-checkpointing", HEAD + ENABLED.replace(old, new))
    assert "checkpoint(" in text.split("\n")[draft.line - 1]
    assert "save_memory()" in apply(text, draft.fixes[0].edits)
