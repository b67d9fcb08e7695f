"""Batches of a TensorDataset by one index each: the same batches in the same order, or no edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.loader_without_workers import INDEX_SHARE, LoaderWithoutWorkers
from warpline.text.edits import apply

CODE = """\
{head}
{call}  #> site loader num_workers=0 dataset_type={dataset} in_main_ms=40
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
"""
_IMPORT = "from torch.utils.data import DataLoader, TensorDataset"


def found(call: str, head: str = _IMPORT, dataset: str = "TensorDataset") -> tuple[Draft, str]:
    """The finding, and the edited text."""
    example = read_example(CODE.format(head=head, call=call, dataset=dataset))
    (draft,) = LoaderWithoutWorkers().find(Context(example.profile, texts(example)))
    text = next(iter(example.profile.sources.values()))
    return draft, apply(text, list(draft.fixes[0].edits)) if draft.fixes else text


@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("loader = DataLoader(data, batch_size=64, shuffle=True)", _IMPORT),
        ("loader = DataLoader(data, 64, True, drop_last=True)", _IMPORT),
        ("loader = DataLoader(data, 64, drop_last=True)", _IMPORT),
        ("loader = DataLoader(data, drop_last=True)", _IMPORT),
        ("loader = DataLoader(data, shuffle=(not last), batch_size=64)", f"{_IMPORT}\nlast = True"),
        ("loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=last, generator=g)", _IMPORT),
        ("loader = DataLoader(data, shuffle=None, batch_size=64)", _IMPORT),
        ("loader = torch.utils.data.DataLoader(data, batch_size=7, shuffle=True)", "import torch"),
        (
            "loader = DataLoader(\n    data,\n    batch_size=64,  # rows\n    shuffle=True,\n)",
            "from torch.utils.data import (\n    DataLoader as DataLoader,\n    TensorDataset,\n)",
        ),
    ],
)
def test_batches_and_random_numbers_stay(call: str, head: str) -> None:
    draft, text = found(call, head)
    if not draft.fixes:
        assert "is in brackets" in draft.message
        return
    assert draft.fixes[0].applicability == "safe"
    assert "batch_size=None" in text and "BatchSampler(" in text
    seen = []
    for code in (f"{head}\n{call}", text.partition("\nfor batch")[0]):
        x, y = torch.arange(600.0).view(150, 4), torch.arange(150)
        given: dict[str, Any] = {"torch": torch, "x": x, "y": y, "last": True}
        given["g"] = torch.Generator().manual_seed(5)
        given["data"] = torch.utils.data.TensorDataset(x, y)
        torch.manual_seed(3)
        exec(code, given)
        epochs = [list(given["loader"]) for _ in range(2)]
        seen.append((epochs, len(given["loader"]), torch.rand(3)))
    (before, length, drawn), (after, now, drawn_now) = seen
    assert length == now and torch.equal(drawn, drawn_now)
    for one, other in zip(before, after, strict=True):
        assert all(type(batch) is list for batch in other)
        pairs = [pair for two in zip(one, other, strict=True) for pair in zip(*two, strict=True)]
        assert pairs and all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


@pytest.mark.parametrize(
    ("call", "head", "reason"),
    [
        ("loader = DataLoader(data, batch_size=64, collate_fn=pad)", _IMPORT, "passes `collate_fn`"),
        ("loader = DataLoader(data, sampler=weighted, batch_size=64)", _IMPORT, "passes `sampler`"),
        ("loader = DataLoader(data, **options)", _IMPORT, "unpacks its arguments"),
        ("loader = DataLoader(data, 64)", f"{_IMPORT}\nimport accelerate", "makes loaders again"),
        (
            "loader = DataLoader(data, 64)",
            f"{_IMPORT}\nfrom pytorch_lightning.callbacks import Callback",
            "makes loaders again",
        ),
        (
            "loader = DataLoader(data, 64)",
            f"{_IMPORT}\ndef rows(loader): return len(loader) * loader.batch_size",
            "`loader.batch_size` is read",
        ),
        ("loader = feed = DataLoader(data, 64)", f"{_IMPORT}\ndef f(): return feed.sampler", "is read"),
        ("loader = Batches(data, batch_size=64)", "from mine import Batches", "of its own"),
        (
            "loader = DataLoader(data, batch_size=64)",
            f"{_IMPORT}\nclass BatchSampler: pass",
            "means something else",
        ),
    ],
)
def test_no_edit_where_the_loader_is_taken_apart(call: str, head: str, reason: str) -> None:
    draft, _ = found(call, head)
    assert not draft.fixes and reason in draft.message


def test_settings_of_the_same_name_are_no_reads_of_the_loader() -> None:
    assert found("loader = DataLoader(data, batch_size=args.batch_size)")[0].fixes


def test_a_dataset_that_is_asked_for_samples_gets_no_such_edit() -> None:
    draft, _ = found("loader = DataLoader(data, batch_size=64)", dataset="Images")
    assert all("whole batches" not in fix.title for fix in draft.fixes)


@pytest.mark.parametrize(("stack_ms", "left"), [(2, INDEX_SHARE), (20, 0.5)])
def test_copying_rows_stays(stack_ms: int, left: float) -> None:
    """What one index still has to do is not promised."""
    code = CODE.format(head=_IMPORT, call="loader = DataLoader(data, 64)", dataset="TensorDataset")
    ops = f"use loader; op aten::stack cpu_ms={stack_ms}; op aten::select cpu_ms=15"
    example = read_example(code.replace("use loader", ops))
    (draft,) = LoaderWithoutWorkers().find(Context(example.profile, texts(example)))
    assert draft.saving_ms == pytest.approx(40.0 * (1 - left))


ROWS = """\
from torch.utils.data import DataLoader
class Readings:
    def __getitem__(self, at):
        {body}
loader = DataLoader(Readings(), batch_size=8, shuffle=True)
#^ site loader num_workers=0 dataset_type={kind} rows_type=Readings rows_line=3 in_main_ms=40
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
"""


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ("return self.x[at], self.y[at]", True),
        ('"""One of them."""; return self.x[at], self.y[at]', False),
        ('return {"x": self.x[at].float(), "y": self.y[at].long()}', True),
        ("return [self.x[at]]", True),
        ("return self.x[at].float()", True),
        ("return self.x[at], self.names[at]", False),  # a list does not take a list
        ("return self.x[at], at", False),
        ("return self.x[at].mean(), self.y[at]", False),
        ("return self.x[self.order[at]], self.y[at]", False),
        ("return self.x[at + 1], self.y[at]", False),
        ("return self.x[at, 0], self.y[at]", False),
        ("x = self.x[at]; return x, self.y[at]", False),
    ],
)
@pytest.mark.parametrize("kind", ["Readings", "Subset"])
def test_a_dataset_of_the_users_that_only_indexes_its_tensors(body: str, whole: bool, kind: str) -> None:
    example = read_example(ROWS.format(body=body, kind=kind))
    (site,) = example.profile.facts.sites
    facts = {**site.facts, "rows_file": site.file, "rows_tensors": ["x", "y", "order"]}
    profile = replace(
        example.profile, facts=replace(example.profile.facts, sites=(replace(site, facts=facts),))
    )
    (draft,) = LoaderWithoutWorkers().find(Context(profile, texts(example)))
    assert ("whole batches" in draft.fixes[0].title) is whole
