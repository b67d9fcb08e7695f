"""Code that looks like what a rule finds and means something else: no edit, or no finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.test_no_breakage import fixed
from warpline.model.profile import Profile
from warpline.wire.births import Argument, Holder, UserFrame
from warpline.wire.dataflow import Dataflow, Masked, OperatorSite
from warpline.wire.run import Site

MEAN = """\
#> memory growth_bytes_per_step=52428800
mean = None
for x in loader:
    y = model(x)  #> cost device_ms=20 kept_bytes=52428800 nodes=40 calls=1
    criterion(y).backward()  #> cost calls=1 nodes=2
    mean = {value}  #> cost cpu_ms=0.001 calls=1 nodes=6
"""


@pytest.mark.parametrize(
    "value", ["0.9 * mean + 0.1 * spread(y).item()", "0.9 * mean + 0.1 * float(spread(y))"]
)
def test_a_mean_of_numbers_has_no_graph(value: str) -> None:
    assert not fixed(MEAN.format(value=value), "graph-kept-alive")


def test_a_mean_that_begins_as_a_number_cannot_be_detached_whole() -> None:
    (told,) = fixed(MEAN.format(value="0.0 if mean is None else 0.9 * mean + spread(y)"), "graph-kept-alive")
    assert "the side of the `if`" in told


ARRAYS = """\
import numpy as np
import torch

few, far = 2, read()
order = torch.as_tensor({made})
place = torch.as_tensor(np.random.rand(9, 2))
for step in range(400):
    near = torch.cdist(place, place)
    #^ cost device_ms=20; op aten::cdist device_ms=20 dtypes=double,double shapes=[[9,2],[9,2]]
"""


@pytest.mark.parametrize(
    "made",
    [
        "np.random.permutation(9)",
        "np.arange(9)",
        "np.argsort(keys)",
        "np.array(labels)",
        "2.0 * np.pi",
        "np.random.rand(9) > 0.5",
        "np.concatenate([[few], np.repeat(few * 2, 4)])",
        "np.array(far / few)",  # far is not known to be a number
    ],
)
def test_arrays_of_whole_numbers_stay_whole(made: str) -> None:
    (told,) = fixed(ARRAYS.format(made=made), "float64-on-device")
    assert f"order = torch.as_tensor({made})\n" in told
    assert "np.random.rand(9, 2), dtype=torch.float32)" in told


@pytest.mark.parametrize(
    ("numbers", "made"),
    [
        ("a, b = 4 / 9, 1 / 9", "np.concatenate([[a], np.repeat(b, 4)])"),
        ("a = 1 / 36", "np.array([2 * a] * 4)"),
        ("a = 2", "np.array([1 / a] * 4)"),
        ("def f():\n    return 3\na = -0.5", "np.full(4, a)"),
    ],
)
def test_arrays_of_numbers_with_a_fraction_are_cast(numbers: str, made: str) -> None:
    code = ARRAYS.replace("order = ", f"{numbers}\norder = ").format(made=made)
    (told,) = fixed(code, "float64-on-device")
    assert f"order = torch.as_tensor({made}, dtype=torch.float32)\n" in told


@pytest.mark.parametrize(
    "told_apart",
    ["if order.dtype == torch.float64: print()", 'TYPES = {"f32": torch.float32, "float64": torch.float64}'],
)
def test_a_type_that_is_compared_or_looked_up_stays(told_apart: str) -> None:
    code = ARRAYS.replace("order = torch.as_tensor({made})", f"order = load()\n{told_apart}")
    (told,) = fixed(code, "float64-on-device")
    assert told_apart in told
    assert "np.random.rand(9, 2), dtype=torch.float32)" in told


def test_a_name_that_is_given_a_value_again_and_again_is_followed_once() -> None:
    again = "\n".join(f"x = step(x, y, {at})\ny = step(y, x, {at})" for at in range(40))
    code = ARRAYS.replace("order = torch.as_tensor({made})", f"x = y = read()\n{again}\nx = torch.tensor(x)")
    (told,) = fixed(code, "float64-on-device")
    assert "x = torch.tensor(x)\n" in told


def test_labels_from_numpy_stay_whole() -> None:
    code = ARRAYS.replace(
        "order = torch.as_tensor({made})", "kinds = {made}\nkinds = torch.from_numpy(kinds)"
    )
    (told,) = fixed(code.format(made="rng.integers(0, 9, 100)"), "float64-on-device")
    assert "kinds = torch.from_numpy(kinds)\n" in told


def test_an_item_waits_for_its_own_copy() -> None:
    code = """\
#> totals idle_ms=6
import torch
for images in loader:
    seen.append(train(images).item())
    #^ cost device_ms=14 idle_ms=6 step_ms=20 syncs=1
    #^ kernel "Memcpy DtoH (Device -> Pinned)" device_ms=0.01 kind=copy
    torch.cuda.synchronize()  #> cost cpu_ms=12 sync_ms=12 step_ms=0.1 syncs=1
"""
    (told,) = fixed(code, "synchronize-in-step")
    assert "torch.cuda.synchronize()" not in told


BAG = """\
import torch
table = torch.nn.EmbeddingBag(1500000, 128{more})
#^ site module type=EmbeddingBag num_embeddings=1500000 embedding_dim=128
optimizer = torch.optim.SGD(table.parameters(), lr=0.05)
#^ site optimizer type=SGD elements=192000000 shapes=[[1,1500000,128]] with.momentum=0 with.weight_decay=0
for ids, clicked in loader:
    loss = loss_of(table(ids), clicked)
    #^ cost step_ms=4 device_ms=4 backward_ms=3
    #^ op aten::_embedding_bag shapes=[[1500000,128],[65536]] device_ms=0.5
    #^ op aten::_embedding_bag_dense_backward phase=backward shapes=[[4096,128],[65536]] device_ms=1
    #^ op aten::fill_ phase=backward shapes=[[1500000,128],[]] device_ms=2
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 device_ms=5; op aten::_foreach_add_ device_ms=5
"""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (', mode="sum"', 'mode="sum", sparse=True)'),
        (', None, 2.0, False, "sum", False', "set elsewhere"),
        (', None, 2.0, True, "sum"', "`scale_grad_by_freq` needs dense"),
    ],
)
def test_arguments_of_an_embedding_bag_by_position(more: str, told: str) -> None:
    (found,) = fixed(BAG.format(more=more), "dense-embedding-gradient")
    assert told in found


BY_FUNCTION = """\
import torch
import torch.nn.functional as F
table = torch.nn.Parameter(torch.randn(1500000, 128){moved})
optimizer = torch.optim.Adagrad([table], lr=0.05{form})
#^ site optimizer type=Adagrad elements=192000000 shapes=[[1,1500000,128]] with.weight_decay=0
for ids, clicked in loader:
    rows = table{scaled}  #> cost step_ms=0.1
    loss = loss_of(F.embedding_bag(ids, rows{more}), clicked)
    #^ cost step_ms=4 device_ms=4 backward_ms=3
    #^ op aten::_embedding_bag shapes=[[1500000,128],[65536]] device_ms=0.5
    #^ op aten::_embedding_bag_dense_backward phase=backward shapes=[[4096,128],[65536]] device_ms=1
    #^ op aten::fill_ phase=backward shapes=[[1500000,128],[]] device_ms=2
    #> tensor %1 shape=[1500000,128] parameter=true; tensor %2 shape=[65536]; tensor %3 shape=[1500000,128]
    #> node aten._embedding_bag.default args=[%{table},%2] shape=[4096,128]
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 device_ms=5; op aten::_foreach_add_ device_ms=5
"""


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "F.embedding_bag(ids, rows, sparse=True)"),
        ({"more": ', mode="mean"'}, 'mode="mean", sparse=True)'),
        ({"more": ', mode="max"'}, "`sum` and `mean` only"),
        ({"more": ", scale_grad_by_freq=True"}, "`scale_grad_by_freq` needs dense"),
        ({"more": ", sparse=wanted"}, "set elsewhere"),
        ({"form": ", fused=True"}, "does not accept sparse gradients"),
        ({"scaled": " * 0.5", "table": "3"}, "if nothing is done to the table before"),
    ],
)
def test_a_function_that_looks_rows_up_takes_sparse(changed: dict[str, str], told: str) -> None:
    parts = {"moved": "", "form": "", "scaled": "", "more": "", "table": "1", **changed}
    (found,) = fixed(BY_FUNCTION.format(**parts), "dense-embedding-gradient")
    assert told in found


ATTENTION = """\
#> steps step_ms=40
import torch.nn.functional as F

def options(q):
    return {{"attn_mask": {mask}}}

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, **options(q))
    #^ cost device_ms=24; op aten::_scaled_dot_product_cudnn_attention device_ms=24
    #^ op aten::scaled_dot_product_attention shapes=[[8,8,9,64],[8,8,9,64],[8,8,9,64],[9,9]] dtypes=c10::Half

{other}
attend(*inputs).sum().backward()  #> cost device_ms=1
"""


def causal(profile: Profile) -> Profile:
    (line,) = (cost.line for cost in profile.lines if cost.device_ms > 20)
    (file,) = profile.sources
    flow = Dataflow(
        missing="",
        names=("aten._scaled_dot_product_cudnn_attention.default",),
        sites=(OperatorSite(file, line, "attend"),),
        name=(0,),
        site=(0,),
        masked=(Masked(0, True),),
    )
    return replace(profile, facts=replace(profile.facts, dataflow=flow))


@pytest.mark.parametrize(
    ("mask", "other", "edited"),
    [
        ("book.seen(q)", "", True),
        ("book.seen(q)", 'hidden = options(inputs[0])["attn_mask"]', False),
        ("book.seen(q)", "show(**options(inputs[0]))", False),
        ("book.seen(q) if book.training else None", "", False),
    ],
)
def test_a_mask_that_other_code_reads_stays_in_its_mapping(mask: str, other: str, edited: bool) -> None:
    (told,) = fixed(ATTENTION.format(mask=mask, other=other), "slow-attention-kernel", causal)
    assert ('return {"is_causal": True}' in told) == edited
    assert ("No edit is offered" in told) != edited


OPTIONS = """\
#> steps step_ms=66
import torch
class Options:
    foreach: bool = False
optimizer = torch.optim.AdamW(net.parameters(), **asdict(Options()))
#^ site optimizer type=AdamW foreach=false parameters=220
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("field", "foreach", "    foreach: bool = True\n"),
        ("command line", "--no-foreach", "the command line passes `--no-foreach`: change it there"),
    ],
)
def test_foreach_is_changed_where_it_is_written(kind: str, name: str, told: str) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        arguments = (Argument("foreach", False, True, Holder(kind, file, 3, 20, name)),)
        sites = tuple(replace(site, arguments=arguments) for site in profile.facts.sites)
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(OPTIONS, "per-tensor-optimizer", held)
    assert told in found


MAPPING = """\
#> steps step_ms=66
import torch
settings = {"lr": 3e-4, "weight_decay": 0.01}
optimizer = torch.optim.AdamW(net.parameters(), **settings)
#^ site optimizer type=AdamW parameters=220
other = torch.optim.RMSprop(head.parameters(), **settings)
#^ site optimizer type=RMSprop parameters=2
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""


@pytest.mark.parametrize(
    ("shared", "read", "told"),
    [
        (False, True, 'settings = {"lr": 3e-4, "weight_decay": 0.01, "fused": True}\n'),
        (True, True, "No edit is offered: RMSprop takes the same settings"),
        (False, False, "AdamW(net.parameters(), **settings, fused=True)\n"),  # it got neither form
    ],
)
def test_fused_is_put_into_the_mapping_that_the_call_unpacks(shared: bool, read: bool, told: str) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        decay = Holder("entry", file, 2, 39, "weight_decay") if read else None  # else from elsewhere
        arguments = (
            Argument("params", "generator", True),
            Argument("lr", 3e-4, True, Holder("entry", file, 2, 18, "lr")),
            Argument("weight_decay", 0.01, True, decay),
            Argument("foreach", None, False),
            Argument("fused", None, False),
        )
        sites = tuple(
            replace(site, arguments=arguments) if shared or site.facts["type"] == "AdamW" else site
            for site in profile.facts.sites
        )
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(MAPPING, "per-tensor-optimizer", held)
    assert told in found


def test_fused_may_be_in_what_a_call_unpacks_where_its_arguments_were_not_recorded() -> None:
    (found,) = fixed(MAPPING, "per-tensor-optimizer")
    assert "No edit is offered: `fused` may be in the unpacked arguments" in found


KINDS = """\
#> steps step_ms=66
import torch
from toolbox import {imported}
plan = dict(kind="AdamW", lr=3e-4, betas=(0.9, 0.95))
def made(settings, *given):
    {rest}
    return {call}
    #^ site optimizer type=AdamW parameters=220
optimizer = made(plan, net.parameters())
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""
_ADDED = 'plan = dict(kind="AdamW", lr=3e-4, betas=(0.9, 0.95), fused=True)\n'
_NO_CALL = "No edit is offered: the call that creates the optimizer was not found"


@pytest.mark.parametrize(
    ("rest", "call", "imported", "told"),
    [
        ("rest = dict(settings)", 'kinds[rest.pop("kind")](*given, **rest)', "kinds", _ADDED),
        ('build = kinds.get(settings.pop("kind"))', "build(*given, **settings)", "kinds", _ADDED),
        (
            'rest = {k: v for k, v in settings.items() if k != "kind"}',
            "kinds[0](*given, **rest)",
            "kinds",
            _ADDED,
        ),
        # The entry `kind` is not taken out: what is unpacked may be something else.
        (
            'rest = {k: settings[k] for k in ("lr", "betas")}',
            "kinds[0](*given, **rest)",
            "kinds",
            "return kinds[0](*given, **rest, fused=True)\n",
        ),
        # A function that makes the optimizer may have no such parameter.
        ('settings.pop("kind")', "build(*given, **settings)", "build", _NO_CALL),
    ],
)
def test_fused_is_put_where_a_registry_takes_the_settings_from(
    rest: str, call: str, imported: str, told: str
) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        arguments = (
            Argument("params", "generator", True),
            Argument("lr", 3e-4, True, Holder("entry", file, 3, 29, "lr")),
            Argument("betas", (0.9, 0.95), True, Holder("entry", file, 3, 41, "betas")),
            Argument("foreach", None, False),
            Argument("fused", None, False),
        )
        sites = tuple(replace(site, arguments=arguments) for site in profile.facts.sites)
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(KINDS.format(rest=rest, call=call, imported=imported), "per-tensor-optimizer", held)
    assert told in found


BUILDER = """\
#> steps step_ms=66
import torch
def made(kinds, name, *given, **more):
    settings = dict(plan[name])
    {more}
    return getattr(kinds, settings.pop("kind"))(*given, **settings)
    #^ site optimizer type=AdamW parameters=220
net = made(nets, "net")
optimizer = made(torch.optim, "optimizer", net.parameters())
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""
_WITHIN = '    return getattr(kinds, settings.pop("kind"))(*given, **settings, fused=True)\n'


@pytest.mark.parametrize(
    ("more", "others", "told"),
    [
        ("settings.update(more)", True, 'made(torch.optim, "optimizer", net.parameters(), fused=True)\n'),
        ("settings |= {**more}", True, 'made(torch.optim, "optimizer", net.parameters(), fused=True)\n'),
        ("settings.update(more)", False, _WITHIN),
        ("show(more)", True, _WITHIN),  # what it gets by name goes elsewhere
    ],
)
def test_fused_is_passed_to_the_builder_of_other_things_that_hands_it_on(
    more: str, others: bool, told: str
) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        arguments = (Argument("foreach", None, False), Argument("fused", None, False))
        within = UserFrame(file, 5, "made")
        sites = tuple(
            replace(site, arguments=arguments, frames=(within, UserFrame(file, 7, "<module>")))
            for site in profile.facts.sites
        )
        if others:
            sites += (Site("module", file, 5, "made", frames=(within, UserFrame(file, 6, "<module>"))),)
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(BUILDER.format(more=more), "per-tensor-optimizer", held)
    assert told in found


BOUND = """\
#> steps step_ms=66
import torch
solver = partial(torch.optim.AdamW, lr=3e-4, weight_decay=0.01)
optimizer = solver(net.parameters())
#^ site optimizer type=AdamW parameters=220
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
"""


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (True, "solver = partial(torch.optim.AdamW, lr=3e-4, weight_decay=0.01, fused=True)\n"),
        (False, "optimizer = solver(net.parameters(), fused=True)\n"),  # what else it is given is not known
    ],
)
def test_fused_is_put_into_the_partial_that_is_called(read: bool, told: str) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        decay = Holder("entry", file, 2, 58, "weight_decay") if read else None
        arguments = (
            Argument("params", "generator", True),
            Argument("lr", 3e-4, True, Holder("entry", file, 2, 39, "lr")),
            Argument("weight_decay", 0.01, True, decay),
            Argument("foreach", None, False),
            Argument("fused", None, False),
        )
        sites = tuple(replace(site, arguments=arguments) for site in profile.facts.sites)
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(BOUND, "per-tensor-optimizer", held)
    assert told in found


TABLE = """\
#> steps step_ms=14
import torch
class Plan: options = {"padding_idx": 0}
table = torch.nn.Embedding(2_000_000, 64, **plan.options)
#^ site module type=Embedding num_embeddings=2000000 embedding_dim=64
other = Other(2_000_000, 64, **plan.options)
#^ site module type=__main__.Other
optimizer = torch.optim.Adagrad(table.parameters())
#^ site optimizer type=Adagrad elements=128000000 shapes=[[1,2000000,64]]
for ids in batches:
    rows = table(ids)
    #^ cost step_ms=3 device_ms=3 backward_ms=2; op aten::embedding shapes=[[2000000,64],[512,32]]
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,32,64],[512,32]] device_ms=0.3
    #^ op aten::fill_ phase=backward shapes=[[2000000,64],[]] device_ms=1.5
    rows.sum().backward()
    optimizer.step()  #> use optimizer; cost step_ms=9 device_ms=9; op aten::_foreach_add_ device_ms=9
"""


@pytest.mark.parametrize(
    ("shared", "read", "told"),
    [
        (False, True, 'class Plan: options = {"padding_idx": 0, "sparse": True}\n'),
        (True, True, "No edit is offered: other modules take the same settings"),
        (False, False, "No edit is offered: `sparse` may be in the unpacked arguments"),
    ],
)
def test_sparse_is_put_into_the_mapping_that_the_call_unpacks(shared: bool, read: bool, told: str) -> None:
    def held(profile: Profile) -> Profile:
        (file,) = profile.sources
        arguments = (
            Argument("num_embeddings", 2_000_000, True),
            Argument("embedding_dim", 64, True),
            Argument("padding_idx", 0, True, Holder("entry", file, 2, 38, "padding_idx") if read else None),
            Argument("sparse", False, False),
        )
        plain = {"Embedding": arguments, "Adagrad": (Argument("weight_decay", 0, False),)}
        others = arguments if shared else ()
        sites = tuple(
            replace(site, arguments=plain.get(str(site.facts["type"]), others))
            for site in profile.facts.sites
        )
        return replace(profile, facts=replace(profile.facts, sites=sites))

    (found,) = fixed(TABLE, "dense-embedding-gradient", held)
    assert told in found


ASSERTED = """\
#> totals idle_ms=8
import torch
for images in loader:
    scores = model(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    assert {check}
    #^ cost cpu_ms=9 sync_ms=9 step_ms=0.5; site sync what=bool calls=1 wait_ms=9 direct=true
"""


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("torch.isfinite(scores).all().item()", "torch._assert_async(torch.isfinite(scores).all())"),
        ("not torch.any(scores < 0), 'negative'", "torch._assert_async(~torch.any(scores < 0), 'negative')"),
        ("scores.all(), f'of {scores}'", "use a fixed text"),
        ("scores.cpu().numpy().all()", "No edit is offered"),
        ("scores.all() and ready", "No edit is offered"),
        ("scores.sum() > 0", "No edit is offered"),
    ],
)
def test_an_assert_of_one_bit_is_left_to_the_device(check: str, told: str) -> None:
    (found,) = fixed(ASSERTED.format(check=check), "sync-in-step")
    assert told in found


NATS = """\
import torch
import torch.nn.functional as F
def nats(scores, target):
    shifted = scores - scores.amax(dim=-1, keepdim=True)  #> cost device_ms=6
    whole = shifted.exp().sum(dim=-1{kept}).log()  #> cost device_ms=6
    hit = shifted.gather(-1, target[..., None])[..., 0]
    #^ cost device_ms=2; op aten::gather shapes=[{shape}] device_ms=1
    return {result}  #> cost device_ms=2
"""


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "return F.cross_entropy(scores, target)"),
        ({"shape": "[8,64,500]"}, "return F.cross_entropy(scores.flatten(0, -2), target.flatten())"),
        ({"result": "-(hit - whole).mean()"}, "return F.cross_entropy(scores, target)"),
        ({"result": "(whole - hit).sum()"}, 'return F.cross_entropy(scores, target, reduction="sum")'),
        ({"result": "(hit - whole).mean()"}, ""),  # its negative
        ({"kept": ", keepdim=True"}, ""),  # a matrix of all rows less all rows
    ],
)
def test_cross_entropy_as_what_is_taken_of_all_classes_less_the_right_one(
    changed: dict[str, str], told: str
) -> None:
    parts = {"kept": "", "shape": "[512,500]", "result": "(whole - hit).mean()", **changed}
    found = fixed(NATS.format(**parts), "hand-written-loss")
    assert [told] == [told for one in found if told in one] if told else found == []
