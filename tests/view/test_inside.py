"""A line that calls a library, opened: in the table, on the page and on the card."""

from __future__ import annotations

from dataclasses import replace

from tests import samples
from warpline.html.page import page
from warpline.model.report import Inside, Report
from warpline.view.anchor_lines import Standing
from warpline.view.hover import card
from warpline.view.inside import Entry, opened, parts
from warpline.view.table import table

LIBRARY = "/venv/site-packages/lib/bert.py"
ENTRIES = (
    Inside("encoder.layer.*.self", LIBRARY, 40, "Self.forward", 2.0, 1.0, 12.0),
    Inside(None, LIBRARY, 90, "Trainer.log", 1.5, 0.0, 1.0),
    Inside("encoder.layer.*.self", LIBRARY, 41, "Self.forward", 1.0, 1.0, 12.0),
    Inside("", LIBRARY, 60, "Model.forward", 1.0, 1.0, 1.0),
    Inside("<b>", "/venv/a<i>.py", 7, "f", 0.3, 0.0, 1.0),
    Inside(None, samples.SCRIPT, 5, "<module>", 0.1, 0.0, 0.0),
    Inside(None, LIBRARY, 91, "Trainer.log", 0.1, 0.0, 1.0),
)


def with_parts() -> Report:
    made = samples.report()
    (first, *rest) = made.lines
    return replace(made, lines=(replace(first, inside=ENTRIES), *rest))


def test_lines_are_added_up_by_module_else_by_function() -> None:
    made = parts(ENTRIES)
    assert [(part.name, part.place, round(part.step_ms, 9)) for part in made] == [
        ("encoder.layer.*.self", "bert.py:40", 3.0),
        ("Trainer.log", "bert.py:90", 1.6),
        ("Model.forward", "bert.py:60", 1.0),
        ("<b>", "a<i>.py:7", 0.3),
        ("<module>", "train.py:5", 0.1),
    ]
    assert sum(part.step_ms for part in made) == sum(entry.step_ms for entry in ENTRIES)


def test_the_table_has_the_large_parts_beneath_their_line() -> None:
    row = table(with_parts(), samples.profile()).functions[0].rows[0]
    assert [part.name for part in row.inside] == [
        "encoder.layer.*.self", "Trainer.log", "Model.forward", "<b>",
    ]  # fmt: skip


def test_a_line_that_a_library_calls_has_no_part_of_its_own() -> None:
    """accelerate wraps the user's ``forward``: nearly all of its lines' time is their own."""
    made = with_parts()
    (first, *rest) = made.lines
    own = Inside(None, first.file, first.line, first.function, first.step_ms - 0.1, 1.0, 0.0)
    wrapper = Inside("", "/venv/accelerate/operations.py", 942, "forward", 0.1, 0.0, 1.0)
    made = replace(made, lines=(replace(first, inside=(own, wrapper)), *rest))
    assert table(made, samples.profile()).functions[0].rows[0].inside == ()
    assert "costliest line" not in card(Standing(first.line, (made.lines[0],), False), made)


def test_the_page_has_them_all_and_escapes_them() -> None:
    text = page(with_parts(), samples.profile())
    assert "the model 4.30 ms" in text and "encoder.layer.*.self 3.00 ms" in text
    assert "bert.py:41" in text and "the line itself" in text
    assert "<b> 0.30" not in text and "a&lt;i&gt;.py:7" in text


def names(entries: tuple[Entry, ...], depth: int = 0) -> list[str]:
    """The entries below each other, each with its time and what is said of it."""
    found = []
    for entry in entries:
        found.append(f"{'  ' * depth}{entry.step_ms:.2f} {entry.name} ({entry.about})")
        found += names(entry.entries, depth + 1)
        if entry.entries:
            for field in ("step_ms", "device_ms"):
                assert abs(sum(getattr(each, field) for each in entry.entries) - getattr(entry, field)) < 1e-9
    return found


def test_an_opened_line_has_modules_in_modules_and_their_lines_and_adds_up() -> None:
    step = replace(Inside(None, LIBRARY, 95, "Optimizer.step", 0.2, 0.2, 1.0), part="optimizer/AdamW.step")
    norm = Inside("encoder.layer.*.norm", LIBRARY, 50, "Norm.forward", 0.5, 0.5, 12.0, text="x = self.w * x")
    small = [
        Inside("encoder.layer.*.norm", LIBRARY, line, "Norm.forward", 0.004, 0.0, 1.0) for line in (51, 52)
    ]
    line = replace(with_parts().lines[0], inside=(*ENTRIES, step, norm, *small))
    entries = opened((line,), 50.0)
    assert names(entries) == [
        "4.81 the model ()",
        "  3.51 encoder.layer.* (encoder.layer.*)",
        "    3.00 self (encoder.layer.*.self)",
        "      2.00 bert.py:40 (Self.forward)",
        "      1.00 bert.py:41 (Self.forward)",
        "    0.51 norm (encoder.layer.*.norm)",
        "      0.50 bert.py:50 (x = self.w * x)",
        "      0.01 the rest (2 more)",
        "  1.00 bert.py:60 (Model.forward)",
        "  0.30 <b> (<b>)",
        "    0.30 a<i>.py:7 (f)",
        "1.60 Trainer.log ()",
        "  1.50 bert.py:90 (Trainer.log)",
        "  0.10 bert.py:91 (Trainer.log)",
        "0.20 optimizer/AdamW.step ()",
        "  0.20 bert.py:95 (Optimizer.step)",
        "0.10 the line itself ()",
    ]
    total = sum(entry.step_ms for entry in line.inside)
    assert abs(sum(entry.step_ms for entry in entries) - total) < 1e-9
    first = entries[0].at
    assert first is not None and (first.file, first.line) == (LIBRARY, 40)  # where most of its time is


def test_a_line_that_hardly_calls_a_library_does_not_open() -> None:
    first = with_parts().lines[0]
    own = Inside(None, first.file, first.line, first.function, first.step_ms, 1.0, 0.0)
    hardly = Inside("", LIBRARY, 60, "Model.forward", 0.01, 0.0, 1.0)
    assert opened((replace(first, inside=(own, hardly)),), 50.0) == ()
    step = replace(own, part="optimizer/AdamW.step")
    assert opened((replace(first, inside=(step,)),), 50.0) == ()


def test_the_card_has_the_largest_three() -> None:
    made = with_parts()
    words = card(Standing(4, (made.lines[0],), False), made)
    assert "| 3.00 ms | `encoder.layer.*.self` | bert.py:40 |" in words
    assert "Model.forward" in words and "a<i>" not in words


def test_the_card_names_what_runs_outside_of_the_modules() -> None:
    made = with_parts()
    step = replace(Inside(None, LIBRARY, 95, "Optimizer.step", 0.2, 0.2, 1.0), part="optimizer/AdamW.step")
    beside = replace(step, file="/venv/other.py", line=3, step_ms=0.1)
    line = replace(made.lines[0], inside=(*ENTRIES, step, beside))
    words = card(Standing(4, (line,), False), made)
    assert "| 0.30 ms | `optimizer/AdamW.step` | bert.py:95 |" in words
    assert "| 0.40 ms | `the rest` | 2 more |" in words
    rest = [part for part in parts(line.inside) if part.name in ("<b>", "<module>")]
    assert round(sum(part.step_ms for part in rest), 9) == 0.4
