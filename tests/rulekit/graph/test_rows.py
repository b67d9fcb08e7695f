"""Products of which few rows are used, in the spellings of losses, and those of which all are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.rows import partly_used

ROWS, LENGTH, WIDTH, WORDS = 4, 16, 8, 50
KEPT = 4  # positions of each row that have a loss


def _inputs() -> tuple[torch.nn.Linear, torch.Tensor, torch.Tensor]:
    head = torch.nn.Linear(WIDTH, WORDS)
    states = torch.randn(ROWS, LENGTH, WIDTH, requires_grad=True)
    labels = torch.randint(WORDS, (ROWS, LENGTH))
    labels[:, : LENGTH - KEPT] = -100
    return head, states, labels


def ignored() -> torch.Tensor:
    head, states, labels = _inputs()
    return F.cross_entropy(head(states).view(-1, WORDS), labels.view(-1))


def ignored_behind_a_shift() -> torch.Tensor:
    head, states, labels = _inputs()
    return F.cross_entropy(head(states)[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def ignored_with_smoothing() -> torch.Tensor:
    head, states, labels = _inputs()
    return F.cross_entropy(head(states).transpose(1, 2), labels, label_smoothing=0.1)


def masked_mean() -> torch.Tensor:
    head, states, labels = _inputs()
    mask = (labels != -100).float()
    each = F.cross_entropy(head(states).flatten(0, 1), labels.clamp(min=0).flatten(), reduction="none")
    return (each * mask.flatten()).sum() / mask.sum()


def masked_with_some_ignored() -> torch.Tensor:
    head, states, labels = _inputs()
    mask = labels != -100
    kept = labels.clamp(min=0)
    kept[:, :2] = 7
    kept[:, 2:] += kept[:, 2:] == 7
    each = F.cross_entropy(head(states).transpose(1, 2), kept, reduction="none", ignore_index=7)
    return (each * mask).sum() / mask.sum()


def ignored_more_than_masked() -> torch.Tensor:
    head, states, labels = _inputs()
    mask = torch.ones(ROWS, LENGTH)
    mask[:, :2] = 0
    each = F.cross_entropy(head(states).transpose(1, 2), labels, reduction="none")
    return (each * mask).sum()


def picked_then_masked() -> torch.Tensor:
    head, states, labels = _inputs()
    logs = F.log_softmax(head(states), -1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
    return -logs[labels != -100].mean()


def picked_and_masked_by_a_product() -> torch.Tensor:
    head, states, labels = _inputs()
    logs = F.log_softmax(head(states), -1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
    mask = labels != -100
    return -(logs * mask).sum() / mask.sum()


def chosen() -> torch.Tensor:
    head, states, labels = _inputs()
    each = F.cross_entropy(head(states).flatten(0, 1), labels.clamp(min=0).flatten(), reduction="none")
    return torch.where(labels.flatten() == -100, 0.0, each).sum()


def normaliser_less_scores() -> torch.Tensor:
    head, states, labels = _inputs()
    scores = head(states)
    own = scores.gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
    return (scores.logsumexp(-1) - own)[labels != -100].mean()


def last_of_all() -> torch.Tensor:
    head, states, _ = _inputs()
    return head(states).unbind(1)[-1].argmax(-1)


def indexed() -> torch.Tensor:
    head, states, labels = _inputs()
    wanted = labels != -100
    return F.cross_entropy(head(states)[wanted], labels[wanted])


def last_position() -> torch.Tensor:
    head, states, _ = _inputs()
    return head(states)[:, -1].argmax(-1)


def all_count() -> torch.Tensor:
    head, states, labels = _inputs()
    return F.cross_entropy(head(states).view(-1, WORDS), labels.clamp(min=0).view(-1))


def few_masked_and_few_ignored() -> torch.Tensor:
    head, states, labels = _inputs()
    labels = labels.clamp(min=0)
    labels[:, 0] = -100
    mask = torch.ones(ROWS, LENGTH)
    mask[:, :2] = 0
    each = F.cross_entropy(head(states).transpose(1, 2), labels, reduction="none")
    return (each * mask).sum()


def selected_before() -> torch.Tensor:
    head, states, labels = _inputs()
    wanted = labels != -100
    return F.cross_entropy(head(states[wanted]), labels[wanted])


def accuracy_reads_all() -> torch.Tensor:
    head, states, labels = _inputs()
    scores = head(states)
    return F.cross_entropy(scores.view(-1, WORDS), labels.view(-1)) + scores.std()


def added_to_its_input() -> torch.Tensor:
    _, states, _ = _inputs()
    return (states + torch.nn.Linear(WIDTH, WIDTH)(states))[:, -1]


def taken_apart() -> torch.Tensor:
    head, states, _ = _inputs()
    first, second = head(states).chunk(2, -1)
    return first.mean() * second.mean()


def one_after_the_other() -> torch.Tensor:
    head, states, _ = _inputs()
    scores = head(states)
    return torch.stack([scores[:, at].tanh() for at in range(LENGTH)]).sum()


def of_each_action() -> torch.Tensor:
    head, states, labels = _inputs()
    return head(states[:, 0]).gather(1, labels.clamp(min=0)[:, :1]).mean()


@pytest.mark.parametrize(
    ("act", "used"),
    [
        (ignored, ROWS * KEPT),
        (ignored_behind_a_shift, ROWS * KEPT),
        (ignored_with_smoothing, ROWS * KEPT),
        (masked_mean, ROWS * KEPT),
        (masked_with_some_ignored, ROWS * KEPT),
        (ignored_more_than_masked, ROWS * KEPT),
        (picked_then_masked, ROWS * KEPT),
        (picked_and_masked_by_a_product, ROWS * KEPT),
        (chosen, ROWS * KEPT),
        (normaliser_less_scores, ROWS * KEPT),
        (last_of_all, ROWS),
        (indexed, ROWS * KEPT),
        (last_position, ROWS),
    ],
)
def test_few_rows_are_used(act: Callable[[], torch.Tensor], used: int) -> None:
    (found,) = partly_used(recorded(act), 0.5)
    assert (found.rows, found.columns, found.used) == (ROWS * LENGTH, WORDS, used)
    assert (found.taken is not None) == (act in (picked_then_masked, indexed, normaliser_less_scores))


@pytest.mark.parametrize(
    "act",
    [
        all_count,
        few_masked_and_few_ignored,
        selected_before,
        added_to_its_input,
        accuracy_reads_all,
        taken_apart,
        one_after_the_other,
        of_each_action,
    ],
)
def test_all_rows_are_used(act: Callable[[], torch.Tensor]) -> None:
    assert list(partly_used(recorded(act), 0.5)) == []
