"""The answer of warpline/heat for each line of a file, encoded as JSON once per run."""

from __future__ import annotations

import json
from collections.abc import Iterator

from warpline.lsp.state.results import Results
from warpline.view.anchor import Anchor
from warpline.view.anchor_lines import Standing
from warpline.view.hints import label, share


class Bars:
    """What the lines of one file say in one run, in one wording of the hints."""

    def __init__(self, results: Results, path: str, wording: str) -> None:
        self.results = results
        self.wording = wording
        self._costs = results.costs_in(path)
        self._said: dict[
            tuple[int, bool], str
        ] = {}  # (line of the run, stale) -> JSON after the line's number

    def written(self, anchor: Anchor, first: int, last: int) -> Iterator[str]:
        """The lines from ``first`` to ``last`` (inclusive) that have results, each as a JSON object."""
        said = self._said
        for line, origin, stale in anchor.placed(first, last):
            words = said.get((origin, stale))
            if words is None:
                words = said[origin, stale] = self._say(origin, stale)
            if words:
                yield f'{{"line":{line}{words}'

    def _say(self, origin: int, stale: bool) -> str:
        """Empty for a line without results."""
        costs = self._costs.get(origin + 1)
        if not costs:
            return ""
        line, step_ms = Standing(0, costs, stale), self.results.step_ms
        said = {
            "share": share(line.step_ms, step_ms),
            "stepMs": line.step_ms,
            "stale": stale,
            "label": label(line, step_ms, self.wording),
        }
        return f", {json.dumps(said)[1:]}"
