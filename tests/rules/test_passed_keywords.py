"""A helper that passes its keywords on to the copy: its callers say ``non_blocking``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.blocking_host_copy import BlockingHostCopy
from warpline.text.edits import apply

SCRIPT = """\
from torch.utils.data import DataLoader

def put(tensor, device, **options):
    {first}
    return tensor.to(device, **{given})  #> cost device_ms=5 copy_ms=5 cpu_ms=6 sync_ms=5
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy

loader = DataLoader(dataset, num_workers=8, pin_memory=True)  #> site loader num_workers=8 pin_memory=true
for images, labels in loader:  #> use loader
    images = {images}  #> cost cpu_ms=0.1
    labels = {labels}  #> cost cpu_ms=0.1
    train(images, labels)  #> cost device_ms=30 idle_ms=8
print(put(total, "cpu"))
"""
WHOLE = {
    "first": "assert tensor is not None",
    "given": "options",
    "images": "put(images, device)",
    "labels": "put(labels, device, non_blocking=True)",
}


def edited(parts: dict[str, str], called: bool = True) -> str | None:
    """The script with the edit; None where none is offered."""
    example = read_example(SCRIPT.format(**WHOLE | parts))
    rows = example.text.splitlines()
    lines = [
        replace(cost, called=((FILE, "put"),) if called else ())
        if "put(" in rows[cost.line - 1]
        else replace(cost, function="put")
        for cost in example.profile.lines
    ]
    profile = replace(example.profile, lines=tuple(lines))
    (draft,) = BlockingHostCopy().find(Context(profile, texts(example)))
    assert all(fix.applicability == "safe" for fix in draft.fixes)
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


@pytest.mark.parametrize(
    ("parts", "images", "labels"),
    [
        ({}, "put(images, device, non_blocking=True)", WHOLE["labels"]),
        ({"labels": "put(labels, device)"}, "put(images, device, non_blocking=True)", WHOLE["labels"]),
        (
            {"images": "put(images, device, copy=True, non_blocking=False)"},
            "put(images, device, copy=True, non_blocking=True)",
            WHOLE["labels"],
        ),
    ],
)
def test_the_callers_in_the_steps_say_it(parts: dict[str, str], images: str, labels: str) -> None:
    after = edited(parts) or ""
    assert f"    images = {images}\n    labels = {labels}\n" in after
    assert 'put(total, "cpu"))' in after


@pytest.mark.parametrize(
    "parts",
    [
        {"images": "put(images, device, **more)"},
        {"given": "settings"},
        {"first": 'options["copy"] = True'},
        {"images": WHOLE["labels"].replace("labels", "images")},  # all say so already
    ],
)
def test_keywords_from_elsewhere_stay(parts: dict[str, str]) -> None:
    assert edited(parts) is None


def test_nothing_is_known_without_the_callers() -> None:
    assert edited({}, called=False) is None
