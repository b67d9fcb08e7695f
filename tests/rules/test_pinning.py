"""pageable-host-copy where the loader pins, but torch finds no way to pin its batches."""

from __future__ import annotations

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.pageable_host_copy import PageableHostCopy
from warpline.text.edits import apply

SCRIPT = """\
import torch
from torch.utils.data import DataLoader

@decorated
class Sweeps:
    __slots__ = ("x", "ids")

    def __init__(self, samples):
        self.x, self.ids = torch.tensor(samples), samples
{more}

loader = DataLoader(dataset, 32, collate_fn=Sweeps, pin_memory={pins})
#^ site loader pin_memory={pins_now} num_workers=4 batch_type={kind} {facts}
for batch in loader:  #> use loader
    x = batch.x.to(device{how})  #> cost device_ms=6 copy_ms=6
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=6 kind=copy
    train(x)  #> cost device_ms=30
"""
OWN = f"batch_file={FILE} batch_tensors='[\"x\"]'"


def found(
    pins: bool = True,
    kind: str = "Sweeps",
    facts: str = OWN,
    how: str = ", non_blocking=True",
    more: str = "",
) -> tuple[str, Draft]:
    now = str(pins).lower()
    example = read_example(SCRIPT.format(pins=pins, pins_now=now, kind=kind, facts=facts, how=how, more=more))
    (draft,) = PageableHostCopy().find(Context(example.profile, texts(example)))
    return example.text, draft


def line(text: str, draft: Draft) -> str:
    return text.splitlines()[draft.line - 1]


def test_the_class_of_the_batches_pins_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data._utils.pin_memory import pin_memory

    text, draft = found()
    assert line(text, draft) == "class Sweeps:"
    fixed = apply(text, draft.fixes[0].edits)
    own = fixed[fixed.index("class Sweeps") : fixed.index("loader =")]
    made: dict[str, type] = {}
    exec("import torch\n" + own, made)
    batch = made["Sweeps"]([1, 2])  # type: ignore[call-arg]
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 10)
    assert pin_memory(batch) is batch
    assert batch.x.tolist() == [11, 12]  # type: ignore[attr-defined]
    assert batch.ids == [1, 2]  # type: ignore[attr-defined]


def test_a_loader_that_does_not_pin_either_is_told_to() -> None:
    text, draft = found(pins=False, how="")
    assert "loader =" in line(text, draft)
    fixed = apply(text, draft.fixes[0].edits)
    assert "pin_memory=True)" in fixed
    assert "batch.x.to(device, non_blocking=True)" in fixed
    assert "self.x = self.x.pin_memory()" in fixed


@pytest.mark.parametrize("facts", [f"batch_file={FILE}", f"batch_file={FILE} batch_tensors=[]"])
def test_attributes_that_cannot_be_assigned_are_left_to_a_person(facts: str) -> None:
    text, draft = found(facts=facts)
    assert line(text, draft) == "class Sweeps:"
    assert "give `Sweeps` a method" in draft.message
    assert not draft.fixes


def test_what_is_made_of_a_pinned_batch_is_told_where_it_is_copied() -> None:
    text, draft = found(kind="tuple", facts="")
    assert "batch.x.to" in line(text, draft)
    assert "made on the host after that" in draft.message
    assert not draft.fixes


def test_a_class_that_was_given_the_method_is_not_given_another() -> None:
    _, draft = found(more="\n    def pin_memory(self):\n        return self")
    assert not draft.fixes
