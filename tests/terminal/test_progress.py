"""Progress as JSON lines through a descriptor."""

from __future__ import annotations

import json
import os

import pytest

from warpline.model.problem import Problem
from warpline.terminal import progress
from warpline.wire.messages import Progress


def test_each_progress_is_one_line() -> None:
    reader, writer = os.pipe()
    with progress.shown(writer) as shown:
        shown.update(Progress("warmup", 2, 5, "warm-up 2/5"))
        shown.update(Progress("waiting", 0, None, "waiting"))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        assert [json.loads(line) for line in lines] == [
            {"stage": "warmup", "done": 2, "total": 5, "message": "warm-up 2/5"},
            {"stage": "waiting", "done": 0, "total": None, "message": "waiting"},
        ]


def test_a_reader_who_left_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with progress.shown(writer) as shown:
        shown.update(Progress("timing", 1, 5, "timing"))
    os.close(writer)


def test_a_closed_descriptor_is_a_problem() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    os.close(reader)
    with pytest.raises(Problem, match="not open"), progress.shown(writer):
        pass
