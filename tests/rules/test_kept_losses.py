"""A loss that is kept by the step: one number, in a storage that may be larger."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.graph_kept_alive import GraphKeptAlive
from warpline.rules.memory_growth import MemoryGrowth
from warpline.text.edits import apply

HOOKED = """\
#> memory growth_bytes_per_step=4194304 peak_bytes=10000000000
class Curve:
    def after_step(self, loop):
        self.values.append({kept})  #> cost calls=1


class Loop:
    def run(self, batches):
        for x, y in batches:  #> cost calls=1
            self.loss = compare(self.model(x), y)
            #^ cost calls=1 device_ms=20 kept_bytes={bytes}
            #^ op aten::{op} shapes=[[1024,1024],[1024,1024]] dtypes=float,float
            #^ op aten::{op}_backward phase=backward shapes=[{given},[1024,1024]] dtypes=float,float
            self.loss.backward()  #> cost calls=1
            self.call("after_step")  #> cost calls=1
"""


def found(
    kept: str = "loop.loss.detach()", op: str = "smooth_l1_loss", given: str = "[]", size: int = 4194304
) -> tuple[str, Draft]:
    example = read_example(HOOKED.format(kept=kept, op=op, given=given, bytes=size))
    (draft,) = MemoryGrowth().find(Context(example.profile, texts(example)))
    return example.text, draft


def test_a_loss_s_number_is_kept_without_its_storage() -> None:
    text, draft = found()
    assert (draft.line, draft.cause.line) == (3, 9)
    assert "4.0 MiB of it is the storage of one number: `smooth_l1_loss`" in draft.message
    (fix,) = draft.fixes
    assert fix.applicability == "safe"
    assert "self.values.append(loop.loss.detach().clone())" in apply(text, fix.edits)


@pytest.mark.parametrize(
    "other",
    [
        {"op": "huber_loss"},  # the storage of its result is as large as the number
        {"given": "[1024,1024]"},  # one number for each sample
        {"kept": "loop.loss.detach().clone()"},
        {"kept": "loop.scores.detach()"},
        {"kept": "loop.loss.item()"},
        {"size": 4096},  # not the storage of what it compared
    ],
)
def test_what_else_is_kept_has_no_such_edit(other: dict[str, object]) -> None:
    _, draft = found(**other)  # type: ignore[arg-type]
    assert not draft.fixes
    assert "one number" not in draft.message


@pytest.mark.parametrize(
    ("loss", "whole"),
    [
        (F.mse_loss, True),
        (F.smooth_l1_loss, True),
        (F.binary_cross_entropy, True),
        (F.soft_margin_loss, True),
        (F.huber_loss, False),
        (F.l1_loss, False),
        (F.binary_cross_entropy_with_logits, False),
    ],
)
def test_the_losses_are_those_of_the_installed_torch(loss: object, whole: bool) -> None:
    scores = torch.rand(1000, requires_grad=True)
    assert callable(loss)
    kept = loss(scores, torch.rand(1000)).detach()
    assert kept.untyped_storage().nbytes() == (4000 if whole else 4)


ON_A_CPU = """\
#> device kind=cpu; memory growth_bytes_per_step={growth}
for images, labels in loader:
    scores = model(images)  #> cost calls=1 nodes=40 kept_bytes={kept}
    criterion(scores, labels).backward()  #> cost calls=1 nodes=2
    entropy = 0.9 * entropy + 0.1 * spread(scores)  #> cost calls=1 nodes=6
"""


@pytest.mark.parametrize(
    ("growth", "kept", "lines"),
    [(8 << 20, 4 << 20, [4]), (8 << 20, 4096, [4]), (8 << 20, 0, []), (4096, 4 << 20, [])],
)
def test_on_a_cpu_the_process_grows_by_what_the_steps_keep(growth: int, kept: int, lines: list[int]) -> None:
    example = read_example(ON_A_CPU.format(growth=growth, kept=kept))
    found = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in found] == lines


CURVE = """\
#> device kind=cpu; memory growth_bytes_per_step=4194304
def fit(net, loader):
    curves = {{"held_out": []}}
    for rows, held_out in loader:
        net(rows).mean().backward()  #> cost calls=1 nodes=20
        off = net(held_out).square().mean()  #> cost calls=1 nodes=20 kept_bytes=4194304
        curves["held_out"].append(off)  #> cost calls=1
    return curves{ran}
"""


@pytest.mark.parametrize(("ran", "lines"), [("", [6]), ("  #> cost calls=1", [])])
def test_what_a_function_gives_back_once_its_steps_are_over_is_kept(ran: str, lines: list[int]) -> None:
    """In each step it may be a part of what the backward pass goes through."""
    example = read_example(CURVE.format(ran=ran))
    found = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in found] == lines


HOOK = """\
#> memory growth_bytes_per_step=25165824 peak_bytes=10000000000
class Drift:
    def listen(self, module, inputs, output):
        self.heard.append(output.detach())  #> cost calls=1

model.squeeze.register_forward_hook(Drift().listen)
for rows in survey:  #> cost calls=1
    codes = model(rows)  #> cost calls=1 device_ms=20 kept_bytes=25165824
"""
CHART = """\
#> memory growth_bytes_per_step=50331648 peak_bytes=10000000000
class Chart:
    def __call__(self, **points):
        for name, point in points.items():  #> cost calls=3
            self.curves[name].append(point)  #> cost calls=2

for rows in survey:  #> cost calls=1
    guess = model(rows)  #> cost calls=1 device_ms=20 nodes=40 kept_bytes=25165824
    chart({given})  #> cost calls=1 {nodes}
"""


def called(code: str, function: str, line: int) -> Context:
    """The run of ``code``, in which the statement on the last line that has a cost calls ``function``."""
    example = read_example(code)
    name = function.rpartition(".")[2]
    first = next(n for n, text in enumerate(example.text.split("\n"), 1) if f"def {name}(" in text)
    lines = [
        replace(cost, function=function)
        if first < cost.line <= first + 2
        else replace(cost, called=((cost.file, function),) if cost.line == line else ())
        for cost in example.profile.lines
    ]
    return Context(replace(example.profile, lines=tuple(lines)), texts(example))


def test_a_hook_keeps_what_torch_gives_it() -> None:
    context = called(HOOK, "Drift.listen", 7)
    (draft,) = MemoryGrowth().find(context)
    assert (draft.line, draft.cause.line) == (3, 7)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("spread=spread(guess), best=guess.amax()", {4: True}),
        ("spread=spread(guess), step=1", {4: False}),  # `detach` of a number fails
        ("spread=guess.std().item()", {}),
        ("spread=guess.std().item(), step=1", {}),
    ],
)
def test_an_object_that_is_called_keeps_all_that_it_is_given(given: str, found: dict[int, bool]) -> None:
    context = called(CHART.format(given=given, nodes="nodes=4"), "Chart.__call__", 8)
    drafts = list(GraphKeptAlive().find(context))
    assert {draft.line: bool(draft.fixes) for draft in drafts} == found
    assert all(draft.fixes or "detach `spread(guess)` (line " in draft.message for draft in drafts)


STORED = """\
#> device kind=cpu; memory growth_bytes_per_step=20971520 free_bytes=20000000000
class Taps:
    def __init__(self):
        self.taps = {{}}

    def see(self, name, output):
        {kept}  #> cost calls=1

    def drift(self, frames=3):
        {read}

for x in loader:
    output = model(x)  #> cost device_ms=20 kept_bytes=20971520 calls=1
    taps.see("x", output)  #> cost calls=1
    taps.drift()  #> cost calls=1
"""
APPENDED = "self.taps.setdefault(name, []).append(output)"


@pytest.mark.parametrize(
    ("kept", "read", "found"),
    [
        (APPENDED, "return [t[-1] - t[max(-2, -len(t))] for t in self.taps.values()]", True),
        (APPENDED, "return self.taps['x'][-1]", True),
        (APPENDED, "seen = self.taps['x']; return seen[-1] - seen[-2] if len(seen) > 1 else 0", True),
        ("seen = self.taps[name]; seen.append(output)", "return self.taps['x'][-3:]", True),
        (APPENDED, "return [torch.stack(t) for t in self.taps.values()]", False),
        (APPENDED, "seen = self.taps['x']; return seen[frames]", False),
        (APPENDED, "return self.taps['x'][0]", False),
        (APPENDED, "return self.taps", False),
    ],
)
def test_only_the_newest_entries_are_read(kept: str, read: str, found: bool) -> None:
    example = read_example(STORED.format(kept=kept, read=read))
    drafts = list(MemoryGrowth().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in drafts] == ([6] if found else [])


@pytest.mark.parametrize(("growth", "found"), [(262_144, True), (10_000, False)])
def test_what_nothing_reads_is_told_as_soon_as_a_long_run_notices(growth: int, found: bool) -> None:
    text = STORED.format(kept=APPENDED, read="return self.taps['x'][-1]").replace("20971520", str(growth))
    example = read_example(text)
    drafts = list(MemoryGrowth().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in drafts] == ([6] if found else [])
    read = STORED.format(kept=APPENDED, read="return self.taps").replace("20971520", str(growth))
    example = read_example(read)
    assert not list(MemoryGrowth().find(Context(example.profile, texts(example))))


CACHED = """\
#> device kind=cpu; memory growth_bytes_per_step=20971520 free_bytes=20000000000
import functools

class Ranker:
    {decorator}
    def encode(self, session, ids):
        return self.tower(ids)  #> cost device_ms=20 kept_bytes=20971520 calls={calls}

for session, ids in traffic:
    scores = ranker.encode(session, ids)  #> cost calls=1
"""


@pytest.mark.parametrize(
    ("decorator", "calls", "found"),
    [
        ("@functools.lru_cache(maxsize=None)", 1, True),
        ("@functools.cache", 1, True),
        ("@functools.lru_cache(maxsize=64)", 1, False),
        ("@functools.cache", 0.1, False),  # what it keeps is asked for again
    ],
)
def test_a_cache_that_keeps_what_each_step_makes(decorator: str, calls: float, found: bool) -> None:
    example = read_example(CACHED.format(decorator=decorator, calls=calls))
    lines = [
        replace(cost, function="Ranker.encode") if cost.line == 6 else cost for cost in example.profile.lines
    ]
    context = Context(replace(example.profile, lines=tuple(lines)), texts(example))
    assert [draft.line for draft in MemoryGrowth().find(context)] == ([4] if found else [])


RECORDS = """\
#> memory growth_bytes_per_step=20971520
def training(model):
    for x in loader:
        out = model(x)  #> cost device_ms=20 kept_bytes=20971520 nodes=40 calls=1
        out.sum().backward()  #> cost calls=1 nodes=2
        yield {{"out": out.detach(), "rough": out.square().mean()}}  #> cost calls=1 nodes=2 unused_nodes=2

{read}
"""


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ("records = list(training(model))", [5]),
        ("for record in training(model):\n    show(record)", []),
    ],
)
def test_what_a_generator_gives_to_a_list_is_kept(read: str, found: list[int]) -> None:
    example = read_example(RECORDS.format(read=read))
    drafts = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in drafts] == found
    if drafts:
        text = apply(example.text, drafts[0].fixes[0].edits)
        assert '"rough": out.square().mean().detach()' in text


AVERAGED = """\
#> device kind=cpu; memory growth_bytes_per_step={growth} free_bytes=20000000000
class Table:
    def absorb(self, feature):
        self.table = torch.lerp(self.table, feature, 0.1)  #> cost calls=1 nodes=1 unused_nodes=1

for x in loader:
    feature = model(x, table=x)  #> cost device_ms=20 nodes=40 calls=1 kept_bytes={growth}
    loss = pull(feature, {read})  #> cost calls=1 nodes=2
    loss.backward()  #> cost calls=1
    table.absorb(feature)  #> cost calls=1
"""


@pytest.mark.parametrize(
    ("growth", "read", "found"),
    [
        (200_000, "store.table.detach()[label]", [3]),
        (200_000, "store.table[label]", []),  # the backward pass may go through it
        (2_000, "store.table.detach()[label]", []),  # a million steps do not fill the memory
    ],
)
def test_a_running_mean_that_is_read_without_its_graph(growth: int, read: str, found: list[int]) -> None:
    example = read_example(AVERAGED.format(growth=growth, read=read))
    drafts = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [draft.line for draft in drafts] == found
