"""Samples that are the same in each epoch are made once: equal batches in the same order, or no edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.model.change import KeptSamples
from warpline.rulekit import Context, Draft, Rule
from warpline.rules.loader_without_workers import LoaderWithoutWorkers
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.rules.too_few_loader_workers import TooFewLoaderWorkers
from warpline.text.edits import apply
from warpline.wire.births import Argument

_IMPORT = "from torch.utils.data import DataLoader"
_KNOWN = (
    "sample_form=list sample_bytes=1000 sample_ms=0.5 rows_ms=0.2 dataset_length=9600 batches_per_epoch=150"
)
CODE = """\
#> flags cpu_count={cores}; workers batch_ms={batch}
{head}
{call}  #> site loader num_workers={workers} {known} in_main_ms=32
for epoch in range(9):
    for batch in loader:  #> cost cpu_ms=32 idle_ms=32 loader_ms=32; use loader
        train(batch)  #> cost device_ms=8
"""


def found(
    call: str,
    head: str = _IMPORT,
    *,
    rule: type[Rule] = LoaderWithoutWorkers,
    workers: int = 0,
    cores: int = 2,
    known: str = _KNOWN,
    passed: dict[str, Any] | None = None,
    code: str = CODE,
    names: tuple[str, ...] = ("x", "transform"),
) -> tuple[Draft | None, str]:
    """The finding, and the text with its first edit."""
    batch = 40 * max(1, workers)
    example = read_example(
        code.format(head=head, call=call, workers=workers, cores=cores, known=known, batch=batch)
    )
    (site,) = example.profile.facts.sites
    arguments = tuple(Argument(name, value, True, None) for name, value in (passed or {}).items())
    facts = {**site.facts, "dataset_names": list(names), "dataset_file": site.file}
    site = replace(site, facts=facts, arguments=arguments)
    profile = replace(example.profile, facts=replace(example.profile.facts, sites=(site,)))
    draft = next(iter(rule().find(Context(profile, texts(example)))), None)
    text = next(iter(example.profile.sources.values()))
    return draft, apply(text, list(draft.fixes[0].edits)) if draft is not None and draft.fixes else text


def is_kept(draft: Draft | None) -> bool:
    return draft is not None and isinstance(draft.change, KeptSamples)


class Data:
    def __init__(self, form: str) -> None:
        self.form = form

    def __len__(self) -> int:
        return 150

    def __getitem__(self, row: int) -> Any:
        made = torch.arange(4.0) * row
        return {"list": (made, row), "tensor": made, "dict": {"x": made, "y": float(row)}}[self.form]


def batches(code: str, form: str) -> tuple[list[Any], int, torch.Tensor]:
    """Two epochs' batches, how many there are, and what is drawn next."""
    given: dict[str, Any] = {"data": Data(form), "torch": torch, "Data": lambda: Data(form)}
    given["options"] = {"batch_size": 16, "shuffle": True, "num_workers": 0, "drop_last": True}
    torch.manual_seed(3)
    exec(code, given)
    return [list(given["loader"]) for _ in range(2)], len(given["loader"]), torch.rand(3)


def values(batch: Any) -> list[torch.Tensor]:
    if isinstance(batch, dict):
        return list(batch.values())
    return batch if isinstance(batch, list) else [batch]


@pytest.mark.parametrize("form", ["list", "tensor", "dict"])
@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("loader = DataLoader(data, batch_size=64, shuffle=True)", _IMPORT),
        ("loader = DataLoader(Data(), 64, True, drop_last=True)", _IMPORT),
        ("loader = DataLoader(dataset=data, batch_size=7, persistent_workers=False)", _IMPORT),
        ("loader = torch.utils.data.DataLoader(data, **options)", "import torch"),
        ("loader = DataLoader(\n    data,\n    batch_size=64,  # rows\n    shuffle=True,\n)", _IMPORT),
        (
            "loader = DataLoader(data, 8, sampler=SubsetRandomSampler(range(40)))",
            f"{_IMPORT}, SubsetRandomSampler",
        ),
    ],
)
def test_batches_and_random_numbers_stay(call: str, head: str, form: str) -> None:
    known = _KNOWN.replace("sample_form=list", f"sample_form={form}")
    passed = {"num_workers": 0}
    if "sampler=" in call:
        passed["sampler"] = "SubsetRandomSampler"  # type: ignore[assignment]
    draft, text = found(call, head, known=known, passed=passed)
    assert is_kept(draft) and draft is not None
    assert draft.fixes[0].applicability == "unsafe"
    assert "default_collate([" in text
    before, length, drawn = batches(f"{head}\n{call}", form)
    after, now, drawn_now = batches(text.partition("\nfor epoch")[0], form)
    assert length == now and torch.equal(drawn, drawn_now)
    for one, other in zip(before, after, strict=True):
        for old, new in zip(one, other, strict=True):
            assert type(old) is type(new)
            pairs = list(zip(values(old), values(new), strict=True))
            assert pairs and all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_what_workers_need_is_left_out() -> None:
    call = (
        "loader = DataLoader(data, batch_size=16, num_workers=1, prefetch_factor=4, persistent_workers=True)"
    )
    passed = {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}
    draft, text = found(call, rule=TooFewLoaderWorkers, workers=1, passed=passed)
    assert is_kept(draft)
    assert "num_workers=0, prefetch_factor=None, persistent_workers=False" in text
    call = "loader = DataLoader(data, **options)"
    draft, text = found(call, rule=TooFewLoaderWorkers, workers=1, passed=passed)
    assert is_kept(draft)
    assert '**{**options, "num_workers": 0, "persistent_workers": False, "prefetch_factor": None}' in text


@pytest.mark.parametrize("cores", [1, 2])
def test_workers_that_are_too_few_where_no_core_is_left(cores: int) -> None:
    """Otherwise that rule has nothing to say there."""
    call = "loader = DataLoader(data, batch_size=64, num_workers=1)"
    draft, _ = found(call, rule=TooFewLoaderWorkers, workers=1, cores=cores)
    assert is_kept(draft)
    unknown, _ = found(call, rule=TooFewLoaderWorkers, workers=1, cores=cores, known="")
    assert unknown is None


def test_the_gain_is_what_the_trial_leaves() -> None:
    draft, _ = found("loader = DataLoader(data, batch_size=64)")
    assert draft is not None and draft.change == KeptSamples(0.2, draft.change.places)  # type: ignore[union-attr]
    assert draft.saving_ms == pytest.approx(31.8)
    assert "9600 samples" in draft.message and "takes about 5 s; about 151 steps" in draft.message
    pinned, _ = found("loader = DataLoader(data, batch_size=64)", known=f"{_KNOWN} pin_memory=true")
    assert pinned is not None and pinned.saving_ms == pytest.approx(31.6)


def test_workers_that_hide_all_of_it_stay_first() -> None:
    """A batch of rows that takes long, and cores enough."""
    known = _KNOWN.replace("rows_ms=0.2", "rows_ms=6")
    assert not is_kept(found("loader = DataLoader(data, batch_size=64)", cores=32, known=known)[0])
    assert is_kept(found("loader = DataLoader(data, batch_size=64)", cores=32)[0])


@pytest.mark.parametrize(
    "known",
    [
        "dataset_length=9600 batches_per_epoch=150",  # samples differ, or do not fit
        _KNOWN.replace("sample_ms=0.5", "sample_ms=1.1"),  # two epochs do not win 10 s back
        _KNOWN.replace("rows_ms=0.2", "rows_ms=33"),
    ],
)
def test_no_such_edit_where_it_does_not_pay(known: str) -> None:
    assert not is_kept(found("loader = DataLoader(data, batch_size=64)", known=known)[0])


def test_a_loader_that_is_iterated_once() -> None:
    once = CODE.replace("for epoch in range(9):", "if True:")
    assert not is_kept(found("loader = DataLoader(data, batch_size=64)", code=once)[0])


_CALL = "loader = DataLoader(data, batch_size=64)"


@pytest.mark.parametrize(
    ("call", "head", "after"),
    [
        ("loader = DataLoader(data, 64, collate_fn=default_collate)", _IMPORT, ""),
        ("loader = DataLoader(data, batch_sampler=buckets)", _IMPORT, ""),
        ("loader = DataLoader(data, 64, sampler=mine)", _IMPORT, ""),
        ("loader = Batches(data, batch_size=64)", "from mine import Batches", ""),
        ("loader = prepare(DataLoader(data, batch_size=64)) if x else None; y = 1", _IMPORT, ""),
        ("loader = DataLoader(data, *options)", _IMPORT, ""),
        ("loader = DataLoader(data, **options)", _IMPORT, ""),  # of which nothing is known
        (_CALL, f"{_IMPORT}\ndef counts(loader): return loader.dataset.targets", ""),
        (_CALL, _IMPORT, "loader.dataset.set_epoch(3)"),
        (_CALL, _IMPORT, "data.set_epoch(3)"),
        (_CALL, _IMPORT, "data.transform = stronger"),
        (_CALL, _IMPORT, "data.x[rows] = better"),
        (_CALL, _IMPORT, "data.x += 1"),
        (_CALL, _IMPORT, "data.x.clamp_(0)"),
        (_CALL, f"{_IMPORT}\nclass Harder:\n    def step(self): self.data.x.pop()", ""),
        (_CALL, f"{_IMPORT}\nlabels = zeros()\ndata = Labelled(labels)", "labels[rows] = better"),
        (_CALL, f"{_IMPORT}\nlabels = zeros()\ndata = Labelled(labels)", "labels.copy_(better)"),
    ],
)
def test_no_edit_where_samples_may_change_or_the_loader_is_another(call: str, head: str, after: str) -> None:
    code = CODE + (f"    {after}\n" if after else "")
    assert not is_kept(found(call, head, code=code)[0])


@pytest.mark.parametrize(
    ("head", "after"),
    [
        (f"{_IMPORT}\ndata.transform = plain\ndata.load()", ""),  # before the samples are made
        (f"{_IMPORT}\nclass Mine:\n    def __init__(self, x): self.x = x", ""),
        (f"{_IMPORT}\nclass Mine:\n    def __getitem__(self, at): self.x = self.x or load()", ""),
        (f"{_IMPORT}\nlabels = zeros()\ndata = Labelled(labels)", "print(labels.sum(), len(data), data.x)"),
        (_IMPORT, "print(len(loader.dataset), args.dataset, model.weight.data.add_(1))"),
    ],
)
def test_what_only_looks_like_a_change(head: str, after: str) -> None:
    code = CODE + (f"    {after}\n" if after else "")
    assert is_kept(found(_CALL, head, code=code, names=("x", "transform", "data"))[0])


LATER = """\
from torch.utils.data import DataLoader
LEVEL = 0
class Noisy:
    def __getitem__(self, at):
        return self.x[at] * {read}
def harder():
    global LEVEL
    LEVEL = LEVEL + 1
def run(loader):
    for batch in loader:  #> cost cpu_ms=32 idle_ms=32 loader_ms=32; use loader
        train(batch)  #> cost device_ms=8
def main():
    {call}
    #^ site loader num_workers=0 dataset_line=4 {known} in_main_ms=32
    for epoch in range(9):
        run(loader)
{main}
"""


@pytest.mark.parametrize(
    ("read", "main", "kept"),
    [
        ("2", "main()", True),
        ("LEVEL", "main()", False),  # a function gives it another value
        ("2", "for fold in range(5): main()", False),  # each would make its samples
    ],
)
def test_a_loader_of_a_function(read: str, main: str, kept: bool) -> None:
    code = LATER.replace("{main}", main).replace("{read}", read)
    assert is_kept(found(_CALL, code=code)[0]) is kept


RESTARTS = CODE.replace("in_main_ms=32", "in_main_ms=32 wait_ms=32 persistent_workers=false start_ms={start}")


@pytest.mark.parametrize("start", [480, 160])
def test_workers_that_restart_in_each_short_epoch(start: int) -> None:
    """Where they stay, the rest of the wait stays, too; none of it where there are none."""
    known = _KNOWN.replace("batches_per_epoch=150", "batches_per_epoch=5 epochs_started=4 starts_timed=2")
    known = known.replace("sample_ms=0.5", "sample_ms=0.01")
    call = "loader = DataLoader(data, batch_size=1920, num_workers=2)"
    code = RESTARTS.replace("{start}", str(start))
    draft, text = found(call, rule=LoaderWorkersRestart, workers=2, known=known, code=code)
    assert draft is not None and draft.fixes[0].title == "Make all samples once"
    assert draft.saving_ms == pytest.approx(31.8) and draft.change is None
    assert "num_workers=0" in text
    slow = known.replace("rows_ms=0.2", "rows_ms=31")
    draft, text = found(call, rule=LoaderWorkersRestart, workers=2, known=slow, code=code)
    assert "persistent_workers=True" in text
