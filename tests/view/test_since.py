"""Where the lines of a run are, once their file was saved."""

from __future__ import annotations

from tests import samples
from warpline.view import since


def said(train: str) -> tuple[str, ...]:
    texts = {**samples.SOURCES, samples.SCRIPT: train}
    return since.notes(samples.report(), samples.SOURCES, texts.get)


def test_files_that_are_as_they_ran_are_not_named() -> None:
    assert said(samples.SOURCES[samples.SCRIPT]) == ()
    assert said(samples.SOURCES[samples.SCRIPT].replace("\n", "\r\n")) == ()


def test_moved_and_changed_lines() -> None:
    text = "# one\n# two\n" + samples.SOURCES[samples.SCRIPT]
    assert said(text) == (
        "train.py was changed after the run: the lines shown are those that ran; line 5 is 7 now, "
        "8 is 10 now",
    )
    (note,) = said(text.replace("print(loss.item())", "losses.append(loss)"))
    assert note.endswith("; line 5 is 7 now; 1 line is gone or changed")


def test_a_file_that_is_gone_or_was_not_kept_is_not_named() -> None:
    assert since.notes(samples.report(), samples.SOURCES, lambda file: None) == ()
    assert since.notes(samples.report(), {}, samples.SOURCES.get) == ()
