"""Stands in for torch's ``_ProfilerResult`` when a recording has no events."""

from __future__ import annotations

import json
from time import time_ns
from typing import Any


class NothingRecorded:
    def trace_start_ns(self) -> int:
        return time_ns()

    def events(self) -> list[Any]:
        return []

    def trace_activities(self) -> list[Any]:
        return []

    def experimental_event_tree(self) -> list[Any]:
        return []

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": []}, file)
