"""Edits that were seen to break things, or to make them slower: none is offered."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.profile import Profile
from warpline.model.report import Finding
from warpline.text.edits import apply


def fixed(code: str, rule: str, change: Callable[[Profile], Profile] = lambda profile: profile) -> list[str]:
    """The text after the first fix of each finding of the rule; for those without one, the message."""
    example = read_example(code)
    findings = diagnose(change(example.profile), texts(example)).findings
    return [
        apply(example.text, one.fixes[0].edits) if one.fixes else one.message
        for one in findings
        if one.rule == rule
    ]


def ran(text: str, losses: torch.Tensor) -> tuple[str, Any]:
    """What a script's ``run(loader, train)`` prints and returns, where ``train`` gives the numbers of the
    vector ``losses``, one after the other."""
    names: dict[str, Any] = {}
    exec(text, names)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        returned = names["run"](range(len(losses)), lambda at: losses[at] * 1.0)
    return printed.getvalue(), returned


def test_a_running_average_keeps_each_value() -> None:
    (told,) = fixed(
        """\
#> totals idle_ms=8
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    meter.update(loss.item(), images.size(0))  #> cost cpu_ms=9 sync_ms=9
""",
        "sync-in-step",
    )
    assert "may need each value" in told


@pytest.mark.parametrize(
    "call", ["print(loss.item())", "log.info('%f', loss.item())", "bar.set_postfix(loss=loss.item())"]
)
def test_what_only_tells_a_value_tells_it_seldom(call: str) -> None:
    (told,) = fixed(
        f"""\
#> totals idle_ms=8
for step, images in enumerate(loader):
    loss = train(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    {call}  #> cost cpu_ms=9 sync_ms=9
""",
        "sync-in-step",
    )
    assert f"    if step % 50 == 0:\n        {call}" in told


@pytest.mark.parametrize("last", ["(0.9, 0.99)", "betas=(0.9, 0.99)", "betas=[0.9, 0.99]", "(1e-3)"])
def test_a_call_that_ends_in_brackets_takes_one_more_argument(last: str) -> None:
    (told,) = fixed(
        f"""\
import torch
optimizer = torch.optim.Adam(model.parameters(), {last})
#^ site optimizer type=Adam parameters=300 elements=1000000 devices=["cuda:0"]
for batch in loader:
    loss = model(batch)  #> cost device_ms=20
    optimizer.step()
    #^ cost cpu_ms=9 step_ms=9 device_ms=4 launches=900; op aten::add_ count=300 device_ms=4; use optimizer
""",
        "per-tensor-optimizer",
    )
    assert f"Adam(model.parameters(), {last}, fused=True)" in told


COLLECTED = """\
for batch in loader:
    model(batch)  #> cost step_ms=20 cpu_ms=20 gc_ms=8; gc ms=40
"""


def test_two_collections_in_many_steps_are_no_pause_in_the_step() -> None:
    def timed(spent_ns: int) -> Callable[[Profile], Profile]:
        return lambda profile: replace(
            profile,
            manifest=replace(profile.manifest, timed_ns=(20_000_000,) * 100),
            facts=replace(profile.facts, gc_timed_ns=spent_ns),
        )

    assert fixed(COLLECTED, "gc-pause-in-step", timed(0)) == []
    assert len(fixed(COLLECTED, "gc-pause-in-step", timed(400_000_000))) == 1


@pytest.mark.parametrize(("others_share", "found"), [(0.05, 1), (0.5, 0)])
def test_an_evaluation_may_have_had_the_collections(others_share: float, found: int) -> None:
    def timed(profile: Profile) -> Profile:
        timed_ns = (20_000_000,) * 100
        manifest = replace(profile.manifest, timed_ns=timed_ns, others_share=others_share)
        return replace(profile, manifest=manifest, facts=replace(profile.facts, gc_timed_ns=400_000_000))

    assert len(fixed(COLLECTED, "gc-pause-in-step", timed)) == found


@pytest.mark.parametrize(("full_ms", "found"), [((400,), 0), ((200, 200), 1)])
def test_one_full_collection_has_no_rate(full_ms: tuple[int, ...], found: int) -> None:
    def timed(profile: Profile) -> Profile:
        full = tuple(one * 1_000_000 for one in full_ms)
        facts = replace(profile.facts, gc_timed_ns=sum(full), gc_full_timed_ns=full, gc_ns=((0, full[0]),))
        return replace(profile, manifest=replace(profile.manifest, timed_ns=(20_000_000,) * 100), facts=facts)

    assert len(fixed(COLLECTED, "gc-pause-in-step", timed)) == found


def test_nor_has_one_in_the_captured_steps_where_few_were_timed() -> None:
    def alone(profile: Profile) -> Profile:
        return replace(
            profile, facts=replace(profile.facts, gc_ns=((0, 40_000_000), (50_000_000, 51_000_000)))
        )

    assert len(fixed(COLLECTED, "gc-pause-in-step")) == 1
    assert fixed(COLLECTED, "gc-pause-in-step", alone) == []


RARE = """\
#> steps step_ms=20
for batch in loader:  #> use optimizer; site optimizer
    model(batch)  #> cost step_ms=20 cpu_ms=20
    {seldom}
"""


def collected_while_timed(seldom: str) -> tuple[Finding, ...]:
    example = read_example(RARE.format(seldom=seldom))
    profile = replace(
        example.profile,
        manifest=replace(example.profile.manifest, timed_ns=(20_000_000,) * 100),
        facts=replace(example.profile.facts, gc_timed_ns=400_000_000),
    )
    return diagnose(profile, texts(example)).findings


def test_the_scripts_own_collections_are_not_called_automatic() -> None:
    assert not collected_while_timed("if batch.number % 50 == 0: gc.collect()")


def test_nor_is_what_they_take_more_of_the_timed_steps() -> None:
    """The captured steps had one of them, which takes 1 ms of each step; the timed ones had 4 ms."""
    told = collected_while_timed("gc.collect()  #> cost cpu_ms=1 idle_ms=1 step_ms=1 gc_ms=1; gc ms=5")
    assert [(one.rule, one.line) for one in told] == [("gc-pause-in-step", 3)]


def test_collections_that_only_the_timed_steps_had_are_told() -> None:
    (finding,) = collected_while_timed("pass")
    assert (finding.rule, finding.line) == ("gc-pause-in-step", 1)
    assert finding.evidence[0].value == pytest.approx(4.0)


LOADER = """\
from torch.utils.data import DataLoader
workers = {workers}
loader = DataLoader(data, batch_size=64, num_workers=workers)
#^ site loader num_workers={number} dataset_type={dataset} batches_per_epoch=5 epochs_started=40
for epoch in range(100):
    for batch in loader:  #> cost cpu_ms=9 loader_ms=9 idle_ms=9; use loader
        train(batch)  #> cost device_ms=10
"""


def test_workers_that_may_be_none_are_not_kept_without_asking() -> None:
    (told,) = fixed(
        """\
import os
from torch.utils.data import DataLoader
workers = int(os.environ.get("WORKERS", "2"))
loader = DataLoader(data, batch_size=64, num_workers=workers)
#^ site loader num_workers=4 persistent_workers=false batches_per_epoch=4 epochs_started=12
for epoch in range(90):
    for images, labels in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
        train(images, labels)  #> cost device_ms=20
""",
        "loader-workers-restart",
    )
    assert "persistent_workers=workers > 0" in told


def test_tensors_in_memory_get_no_workers() -> None:
    (told,) = fixed(LOADER.format(workers=0, number=0, dataset="TensorDataset"), "loader-without-workers")
    assert "batch_size=None" in told and "num_workers=workers," in told


def test_binary_cross_entropy_by_hand_is_quicker_on_a_cpu() -> None:
    code = """\
#> device kind={kind}
import torch
import torch.nn.functional as F

def loss(p, y):
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
    #^ cost device_ms=20 cpu_ms=20; op aten::log count=2 device_ms=8; op aten::mul count=2 device_ms=8
"""
    assert fixed(code.format(kind="cpu"), "hand-written-loss") == []


CHECKPOINTED = """\
#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=60000000000
from torch.utils.checkpoint import checkpoint
for x in loader:
    y = checkpoint(block, x, {more})
    #^ cost step_ms=60 device_ms=60 recompute_ms=15; op _NoopSaveInputs count=12
    #^ op aten::mm phase=recompute device_ms=9 count=24 shapes=[[8192,1024],[1024,4096]] dtypes=float,float
"""


def test_arguments_of_checkpoint_do_not_go_to_the_block() -> None:
    (told,) = fixed(CHECKPOINTED.format(more="use_reentrant=False"), "needless-checkpointing")
    assert "y = block(x)" in told
    (told,) = fixed(CHECKPOINTED.format(more="**options"), "needless-checkpointing")
    assert "y = block" not in told


TABLE = """\
x = torch.nn.Embedding(1500000, 128)(ids)
#^ site module type=Embedding num_embeddings=1500000 embedding_dim=128
#^ cost step_ms=4 device_ms=4 backward_ms=3; op aten::embedding shapes=[[1500000,128],[4096,16]]
#^ op aten::embedding_dense_backward phase=backward shapes=[[4096,16,128],[4096,16]] device_ms=1
#^ op aten::fill_ phase=backward shapes=[[1500000,128],[]] device_ms=2
optimizer = torch.optim.SGD({groups}, lr=0.1)
#^ site optimizer type=SGD elements=192000000 shapes=[[1,1500000,128]] with.momentum=0 with.weight_decay=0
optimizer.step()  #> use optimizer; cost step_ms=5 device_ms=5; op aten::_foreach_add_ device_ms=5
"""


def test_sparse_gradients_do_not_go_with_the_weight_decay_of_a_group() -> None:
    (told,) = fixed(TABLE.format(groups="model.parameters()"), "dense-embedding-gradient")
    assert "sparse=True" in told
    groups = '[{"params": model.parameters(), "weight_decay": 0.01}]'
    assert not fixed(TABLE.format(groups=groups), "dense-embedding-gradient")


TAUGHT = """\
#> flags grad_enabled_in_step=true
import torch
for images in loader:
    {line}
    #^ cost step_ms=9 device_ms=9 cpu_ms=8 nodes=64 unused_nodes=60; op aten::linear count=20 cpu_ms=8
    loss.backward()  #> cost step_ms=9 backward_ms=9; op aten::mm phase=backward
"""


@pytest.mark.parametrize("line", ["loss = (student(images) - teacher(images)).square().mean()",
                                  "loss = criterion(student(images), teacher(images))"])  # fmt: skip
def test_a_line_with_the_student_as_well_keeps_its_graph(line: str) -> None:
    (told,) = fixed(TAUGHT.format(line=line), "grad-in-eval")
    assert "no_grad():" not in told
    alone = "wanted = torch.softmax(self.teacher(images.to(device)) / 2, -1)"
    (told,) = fixed(TAUGHT.format(line=alone), "grad-in-eval")
    assert "no_grad():" not in told, "a backward pass goes through 4 of the 64 nodes"
    (told,) = fixed(TAUGHT.format(line=alone).replace("nodes=64", "nodes=60"), "grad-in-eval")
    assert f"with torch.no_grad():\n        {alone}" in told


RESIDUAL = """\
#> memory growth_bytes_per_step=52428800
class Block:
    def forward(self, x):
        h = self.mlp(x)  #> cost device_ms=9 kept_bytes=52428800 nodes=9 calls=1
        x += h  #> cost device_ms=1 nodes=1 calls=1
        return x
"""
AUXILIARY = """\
#> memory growth_bytes_per_step=52428800
class Experts:
    def forward(self, x):
        extra = balance(x)  #> cost device_ms=9 kept_bytes=52428800 nodes=9 calls=1
        self.extra = self.extra + extra  #> cost device_ms=1 nodes=1 calls=1
for x in loader:
    loss = criterion(model(x)) + model.extra  #> cost device_ms=1 nodes=4 calls=1
    loss.backward()
"""


@pytest.mark.parametrize("code", [RESIDUAL, AUXILIARY])
def test_a_sum_that_is_sent_back_keeps_its_graph(code: str) -> None:
    assert not fixed(code, "graph-kept-alive")


OF_EPISODES = """\
#> memory growth_bytes_per_step=52428800
def learn():
    parts = []
    for chance, reward in zip(policy.chances, rewards):
        parts.append(-chance * reward)
    loss = torch.cat(parts).sum()
    loss.backward()
for step in range(1000):
    spread = Categorical(policy(state))  #> cost device_ms=9 nodes=9 calls=1
    policy.chances.append(spread.log_prob(action))  #> cost kept_bytes=52428800 nodes=3 calls=1
"""
TRUNCATED = """\
#> memory growth_bytes_per_step=52428800
for step, x in enumerate(loader):
    total += criterion(model(x))  #> cost device_ms=9 kept_bytes=52428800 nodes=9 calls=1
    if step % 16 == 15:
        total.backward()  #> cost calls=0.06
        total = 0  #> cost calls=0.06
"""
A_NUMBER = """\
#> memory growth_bytes_per_step=52428800
def train_on(x):
    loss = criterion(model(x))  #> cost function=train_on kept_bytes=52428800 nodes=9 calls=1
    loss.backward()
    return loss.item()
for x in loader:
    log.append(train_on(x))  #> cost calls=1
"""


@pytest.mark.parametrize("code", [OF_EPISODES, TRUNCATED])
def test_what_a_later_backward_pass_needs_keeps_its_graph(code: str) -> None:
    assert not fixed(code, "graph-kept-alive")


def test_a_number_that_a_function_returns_has_no_graph() -> None:
    assert not fixed(A_NUMBER, "graph-kept-alive")
    with_graph = A_NUMBER.replace("loss.item()", "loss / len(x)").replace("    loss.backward()\n", "")
    assert "log.append(train_on(x).detach())" in fixed(with_graph, "graph-kept-alive")[0]


def test_a_clock_keeps_no_memory() -> None:
    (told,) = fixed(
        """\
#> memory growth_bytes_per_step=52428800
import time
for x in loader:
    y = model(x)  #> cost device_ms=9 kept_bytes=52428800 calls=1
    times.append(time.perf_counter())  #> cost calls=1
""",
        "memory-growth",
    )
    assert "allocated here" in told


def test_a_fused_of_another_mapping_is_not_the_optimizers() -> None:
    code = """\
#> steps step_ms=66
import torch
{other}
def build(net, config):
    return torch.optim.Adam(net.parameters(), **config["optimizer"])
    #^ site optimizer type=Adam foreach=false parameters=220
optimizer = build(net, read(path))
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""
    (told,) = fixed(code.format(other='MODEL = {"width": 64, "fused": False}'), "per-tensor-optimizer")
    assert "No edit is offered" in told
    (edited,) = fixed(code.format(other='ADAM = {"lr": 0.1, "fused": False}'), "per-tensor-optimizer")
    assert '{"lr": 0.1, "fused": True}' in edited


PINNED = """\
import torch
{made}
for frame in camera():
    {filled}
    image = frame.to("cuda")  #> cost device_ms=4 copy_ms=4 sync_ms=4
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=4 kind=copy
    detect(image)  #> cost device_ms=12
"""


@pytest.mark.parametrize(
    ("made", "filled", "applicability"),
    [
        ("", "pass", "safe"),
        ("", "frame.mul_(2)", "safe"),  # each batch of a loader is another tensor
        ("ring = torch.empty(9).pin_memory()", "frame = ring[0]", "unsafe"),
        ("ring = torch.empty(9, pin_memory=True)", "frame = ring[0]", "unsafe"),
    ],
)
def test_a_copy_from_memory_that_the_script_pins_is_not_safe(
    made: str, filled: str, applicability: str
) -> None:
    example = read_example(PINNED.format(made=made, filled=filled))
    (finding,) = diagnose(example.profile, texts(example)).findings
    assert [fix.applicability for fix in finding.fixes] == [applicability]


@pytest.mark.parametrize("filled", ["frame.copy_(fresh)", "frame[:] = fresh"])
def test_a_pinned_tensor_that_is_filled_again_is_copied_at_once(filled: str) -> None:
    code = PINNED.format(made="frame = torch.empty(9).pin_memory()", filled=filled)
    (told,) = fixed(code, "blocking-host-copy")
    assert "fills this host tensor again" in told


@pytest.mark.parametrize("head", ["@staticmethod\n    def", "@routes.post\n    def", "async def"])
def test_inference_mode_is_not_put_above_a_decorator_or_a_coroutine(head: str) -> None:
    code = f"""\
#> flags grad_enabled_in_step=true
class Service:
    {head} answer(net, image):
        return net(image)
        #^ cost device_ms=9 cpu_ms=12; op aten::conv2d count=50 cpu_ms=10 device_ms=9

for image in images:
    Service.answer(net, image)
"""
    (told,) = fixed(code, "grad-in-eval")
    assert "No edit is offered: put" in told


LISTED = """\
import torch
for batch in loader:
    old = {listed}
    if old:
        torch._foreach_zero_(old){more}
        #^ cost step_ms=3 device_ms=3; op aten::_foreach_zero_ count=1 device_ms=3
    loss = model(batch)  #> cost device_ms=40
"""


@pytest.mark.parametrize(
    ("listed", "more", "edited"),
    [
        ("[p.grad for p in weights if p.grad is not None]", "", True),
        ("[p.grad for p in weights]", "", True),
        ("[p.grad for p in weights if p.grad is not None and p.grad.is_leaf]", "", False),
        ("[p.grad for p in weights]; p = 3", "", False),  # the loop would assign it
        ("[p.grad for g in groups for p in g]", "", False),
        ("[p.weight.grad for p in layers]", "", False),
        ("[p.grad for p in weights]", " or print()", False),
    ],
)
def test_a_list_of_gradients_is_unset_where_one_loop_does_the_same(
    listed: str, more: str, edited: bool
) -> None:
    (text,) = fixed(LISTED.format(listed=listed, more=more), "zeroed-gradients")
    assert ("        for p in weights: p.grad = None\n" in text) == edited
    assert edited or "set each `.grad` to None" in text


@pytest.mark.parametrize(
    "listed", ["[h.state for h in cells]", "list(states)", "[]; old = [p.grad for p in w]"]
)
def test_a_list_of_something_else_stays(listed: str) -> None:
    assert fixed(LISTED.format(listed=listed, more=""), "zeroed-gradients") == []


TABLE_FIRST = """\
import torch
table = torch.nn.Embedding(50000, 64, sparse={sparse})
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, foreach=False)
#^ site optimizer type=Adagrad fused=None foreach=false parameters=200
for batch in loader:
    loss = model(table(batch))  #> cost device_ms=40
    loss.backward()
    optimizer.step()
    #^ cost step_ms=20 device_ms=9 idle_ms=11 cpu_ms=20 launches=2400; use optimizer
"""


def test_a_fused_optimizer_does_not_go_with_sparse_gradients() -> None:
    (told,) = fixed(TABLE_FIRST.format(sparse="False"), "per-tensor-optimizer")
    assert "fused=True" in told
    (told,) = fixed(TABLE_FIRST.format(sparse="True"), "per-tensor-optimizer")
    assert "no fused version takes the sparse gradients" in told
