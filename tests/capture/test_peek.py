"""Reading the variables of a frame leaves it as it was."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from warpline.capture.runner.births.peek import names_of


class Thing:
    """Something that can be held weakly."""


def test_what_a_variable_was_is_not_kept() -> None:
    thing, step = Thing(), Thing()
    gone = weakref.ref(step)
    sys._getframe().f_trace = None
    assert names_of(sys._getframe(), thing) == ["thing"]
    step = None  # type: ignore[assignment]
    assert gone() is None


def test_what_the_script_got_of_its_variables_stays() -> None:
    def run(thing: Any) -> dict[str, Any]:
        settings = locals()
        names_of(sys._getframe(), thing)
        return settings

    thing = Thing()
    assert run(thing)["thing"] is thing
    assert names_of(sys._getframe(), thing) == ["thing"]
    assert thing is not None
