"""What is written of the arguments that something was made with."""

from __future__ import annotations

import pytest

from warpline.capture.runner.births.describe import facts, plain
from warpline.capture.runner.births.sites import Sites

torch = pytest.importorskip("torch")


def test_what_holds_many_values_is_told_by_its_type() -> None:
    groups = [{"params": [torch.zeros(3)], "lr": 0.1}]
    assert plain(groups) == ["dict"]
    assert plain(torch.zeros(1000)) == "Tensor"
    assert plain((0.9, None, torch.float16)) == [0.9, None, "torch.float16"]


def test_an_optimizer_says_how_many_groups_it_has() -> None:
    made = torch.optim.SGD([{"params": [torch.zeros(2, requires_grad=True)]} for _ in range(5)], lr=0.1)
    told = facts(torch, "optimizer", made)
    assert (told["parameters"], told["groups"]) == (5, 5)


def test_an_optimizer_says_which_parameters_have_which_settings() -> None:
    table, bias, gate = (torch.zeros(size, requires_grad=True) for size in ((9, 4), (3,), (3,)))
    made = torch.optim.SGD(
        [
            {"params": [table]},
            {"params": [bias], "momentum": 0.9, "lr": 1.0},
            {"params": [gate], "momentum": 0.9, "lr": 2.0},
        ],
        lr=0.1,
    )
    assert facts(torch, "optimizer", made)["settings"] == [
        {"momentum": 0, "weight_decay": 0, "shapes": [[1, 9, 4]]},
        {"momentum": 0.9, "weight_decay": 0, "shapes": [[2, 3]]},
    ]


def test_optimizers_of_one_line_are_counted() -> None:
    """What was made there before, and is gone, is not."""
    sites = Sites({}, {})  # type: ignore[arg-type]
    sites.torch = torch
    kept = [torch.optim.Adam([torch.zeros(size, requires_grad=True)]) for size in (2, 3, 3)]
    for one in (*kept, torch.optim.Adam([torch.zeros(9, requires_grad=True)])):
        sites.add("optimizer", ("train.py", 3, "f"), one, {})
    del one
    found = sites.found()
    assert [site["facts"].get("made") for site in found if "parameters" in site["facts"]] == [3]
    assert next(site["facts"]["all_shapes"] for site in found if site["facts"]) == [[1, 2], [1, 3], [1, 3]]


class Readings:
    def __init__(self) -> None:
        self.x, self.names = torch.zeros(10, 3), ["a"] * 10

    def __len__(self) -> int:
        return 10

    def __getitem__(self, at: int) -> tuple[object, str]:
        return self.x[at], self.names[at]


def test_a_loader_says_what_its_rows_come_from() -> None:
    data = torch.utils.data
    part = data.Subset(data.Subset(Readings(), range(8)), range(4))
    told = facts(torch, "loader", data.DataLoader(part, batch_size=2))
    assert (told["dataset_type"], told["rows_type"], told["rows_tensors"]) == ("Subset", "Readings", ["x"])
    assert told["rows_file"] == __file__ != told["dataset_file"]
    whole = facts(torch, "loader", data.DataLoader(data.TensorDataset(torch.zeros(4, 1))))
    assert (whole["dataset_type"], whole["rows_type"]) == ("TensorDataset", "TensorDataset")
