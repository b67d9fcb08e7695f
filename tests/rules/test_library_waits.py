"""Waits for the device in a library's code: the message says where, and gives no advice for code of yours."""

from __future__ import annotations

from tests.annotated import read_example, texts
from warpline.diagnosis import diagnose

CODE = """\
#> totals idle_ms=9
model = build()
for rows in loader:
    out = model(**rows)
    #^ cost device_ms=10 idle_ms=9 step_ms=20 cpu_ms=9 sync_ms=9 syncs=1
    #^ site sync what=bool calls=1 wait_ms=9
    {below}
"""
LIBRARY = "#^ inside file=/lib/masking_utils.py line=755 function=_ignores sync_ms=8.5 step_ms=9"


def said(below: str) -> str:
    example = read_example(CODE.format(below=below))
    (found,) = diagnose(example.profile, texts(example)).findings
    assert found.rule == "sync-in-step"
    return found.message


def test_a_library_that_waits_is_named() -> None:
    message = said(LIBRARY)
    assert "`_ignores` in `masking_utils.py`" in message
    assert "torch.where" not in message


def test_a_wait_of_the_script_s_own_has_advice() -> None:
    assert "library" not in said("")
    assert "library" not in said(LIBRARY.replace("sync_ms=8.5", "sync_ms=1"))
