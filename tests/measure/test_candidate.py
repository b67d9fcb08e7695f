"""What a candidate is known by."""

from __future__ import annotations

from warpline.measure.candidate import Candidate


def test_the_key_is_of_the_text_alone() -> None:
    one = Candidate(("f1",), "one", {"/a.py": "1", "/b.py": "2"})
    other = Candidate(("f2",), "other", {"/b.py": "2", "/a.py": "1"})
    assert one.key == other.key
    assert one.key != Candidate(("f1",), "one", {"/a.py": "12", "/b.py": ""}).key
