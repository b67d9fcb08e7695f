"""unused-logits: the positions that a cross entropy counts are selected before the layer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.rules.test_selected_before import LINEAR, edited, outcome

HEAD = LINEAR + "\n        self.criterion = nn.CrossEntropyLoss()"
#: Words to find, of which three are hidden; of these no other is -100.
WORDS = "words = (torch.arange(12).view(2, 6) * 7) % 40\nhidden = torch.arange(12).view(2, 6) % 5 == 1\n"
LABELS = WORDS + "labels = words.masked_fill(~hidden, -100)\n"
FLAT = "scores.flatten(0, 1), words.flatten()"


def changed_to(tmp_path: Path, body: str, step: str = "return net(x, where)") -> str | None:
    """The script with the edit, which computes the same."""
    text, changed = edited(tmp_path, body, HEAD, step)
    for one, other in zip(outcome(text), outcome(changed or text), strict=True):
        torch.testing.assert_close(one, other)
    return changed


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
            "return (lost * hidden.view(-1)).sum() / hidden.sum()",
            [
                "counted = hidden.view(-1)\n",
                "scores = self.head(x.flatten(0, 1)[counted])\n",
                "lost = F.cross_entropy(scores, words.flatten()[counted], reduction='none')\n",
                "return lost.sum() / hidden.sum()",
            ],
        ),
        (  # targets that are ignored beside
            "words = words.clamp(min=3)\nscores = self.head(x)\n"
            f"lost = F.cross_entropy({FLAT}, reduction='none', ignore_index=3)\n"
            "return (lost * hidden.view(-1)).sum() / hidden.sum()",
            [
                "counted = hidden.view(-1)\n",
                "(scores, words.flatten()[counted], reduction='none', ignore_index=3)\n",
                "return lost.sum() / hidden.sum()",
            ],
        ),
        (
            "weight = hidden * 0.5\nscores = self.head(self.norm(x))\n"
            "lost = F.cross_entropy(scores.transpose(1, 2), words, reduction='none')\n"
            "return torch.sum(weight * lost) / 3",
            [
                "counted = weight.flatten() != 0\n",
                "self.head(self.norm(x).flatten(0, 1)[counted])\n",
                "F.cross_entropy(scores, words.flatten()[counted], reduction='none')",
                "return (lost * weight.flatten()[counted]).sum() / 3",
            ],
        ),
        (
            "kept = hidden.flatten()\nx = x.flatten(0, 1)\nscores = self.head(x)\n"
            "return (F.cross_entropy(scores, words.flatten(), reduction='none') * kept).sum()",
            [
                "scores = self.head(x[kept])\n",
                "return F.cross_entropy(scores, words.flatten()[kept], reduction='none').sum()",
            ],
        ),
    ],
)
def test_a_mask_over_the_losses(tmp_path: Path, body: str, after: list[str]) -> None:
    changed = changed_to(tmp_path, WORDS + body)
    assert changed is not None
    for line in after:
        assert line in changed


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            "return F.cross_entropy(self.head(x).view(-1, 40), labels.view(-1))",
            [
                "counted = labels.view(-1) != -100\n",
                "F.cross_entropy(self.head(x.flatten(0, 1)[counted]), labels.view(-1)[counted])",
            ],
        ),
        (
            "scores = self.head(x)\nreturn self.criterion(scores.flatten(0, 1), labels.view(-1))",
            ["return self.criterion(scores, labels.view(-1)[counted])"],
        ),
        (
            "labels = labels.clamp(min=3)\nscores = self.head(x)\n"
            "return F.cross_entropy(scores.transpose(1, 2), labels, ignore_index=3, label_smoothing=0.1)",
            [
                "counted = labels.flatten() != 3\n",
                "F.cross_entropy(scores, labels.flatten()[counted], ignore",
            ],
        ),
    ],
)
def test_targets_that_are_ignored(tmp_path: Path, body: str, after: list[str]) -> None:
    changed = changed_to(tmp_path, LABELS + body)
    assert (changed is not None) == bool(after)
    for line in after:
        assert line in (changed or "")


def test_a_layer_of_another_object(tmp_path: Path) -> None:
    taken = "F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction='sum')"
    step = "\n    ".join([*LABELS.splitlines(), "scores = net.head({given})", f"return {taken}"])
    assert changed_to(tmp_path, "return x", step.format(given="net.norm(x)")) is None  # it is one of two
    changed = changed_to(tmp_path, "return x", step.format(given="x"))
    assert changed is not None and "net.head(x.flatten(0, 1)[counted])" in changed


@pytest.mark.parametrize(
    "body",
    [
        # The losses of all positions are read once more, or not added up.
        f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
        "return lost * hidden.flatten()",
        f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
        "return (lost * hidden.flatten()).mean()",
        f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
        "return (lost * hidden.flatten()).sum() / len(lost)",
        f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
        "self.shape = scores.shape\nreturn (lost * hidden.flatten()).sum()",
        # The mask is made, or chosen, behind the layer.
        f"scores = self.head(x)\nhidden = hidden.view(-1)\n"
        f"lost = F.cross_entropy({FLAT}, reduction='none')\nreturn (lost * hidden).sum()",
        f"scores = self.head(x)\nlost = F.cross_entropy({FLAT}, reduction='none')\n"
        "return (lost * hidden.flatten().logical_and(hidden.any())).sum()",
        # Positions in another order than the targets of the mask.
        "scores = self.head(x)\nlost = F.cross_entropy(scores.transpose(0, 1).reshape(-1, 40), "
        "words.T.reshape(-1), reduction='none')\nreturn (lost * hidden.T.reshape(-1)).sum()",
    ],
)
def test_what_may_need_all_losses(tmp_path: Path, body: str) -> None:
    assert changed_to(tmp_path, WORDS + body) is None
