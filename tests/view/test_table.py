"""The report as a table: what is shown, in which order, beside which text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import samples
from warpline.view.table import table
from warpline.view.text import names, printable, short_path
from warpline.wire.run import Request


def test_functions_by_cost_and_their_lines_in_order() -> None:
    shown = table(samples.report(), samples.profile())
    assert [(f.name, f.place) for f in shown.functions] == [
        ("<module>", "train.py:5"),
        ("Net.forward", "model.py:3"),
    ]
    assert [row.line for row in shown.functions[0].rows] == [5, 6, 7, 8]
    assert [row.line for row in shown.functions[1].rows] == [3, 0, 7]  # 0: lines left out between


def test_costs_stand_beside_their_text() -> None:
    (loop, *context, _) = table(samples.report(), samples.profile()).functions[0].rows
    assert (loop.source, loop.share) == ("for x, y in loader:", 0.6)
    assert all(row.cost is None for row in context)


def test_a_cheap_line_between_two_costly_ones_has_its_cost() -> None:
    made = samples.report()
    cheap = [
        samples.line(samples.SCRIPT, 6, "<module>", step_ms=0.001),  # 0.01 %: as good as free
        samples.line(samples.SCRIPT, 7, "<module>", step_ms=0.01),
        samples.line(samples.MODEL, 5, "Net.forward", step_ms=0.02),
    ]
    shown = table(replace(made, lines=(*made.lines, *cheap)), samples.profile())
    costs = [row.cost and row.cost.step_ms for row in shown.functions[0].rows]
    assert costs == [6.0, None, 0.01, 0.4]
    assert [row.line for row in shown.functions[1].rows] == [3, 0, 7]  # too far from both
    assert shown.rest == "2 more lines: 0.021 ms (0.2 % of the step)"


@pytest.mark.parametrize(
    ("asked", "argv", "typed"),
    [
        (Request(target=samples.SCRIPT), ("--name", "a b"), "train.py --name 'a b'"),
        (Request(target="net.train", module=True), (), "-m net.train"),
        (
            Request(target=samples.SCRIPT, launcher=("torchrun", "--nproc-per-node", "2")),
            (),
            "--launcher 'torchrun --nproc-per-node 2' train.py",
        ),
    ],
)
def test_the_title_is_what_one_would_type(asked: Request, argv: tuple[str, ...], typed: str) -> None:
    made = samples.profile()
    made = replace(made, manifest=replace(made.manifest, request=asked))
    shown = table(samples.report(argv=argv), made, cwd="/home/ada/work")
    assert shown.typed == typed
    assert typed.endswith(shown.title)


def test_what_is_not_shown_is_counted() -> None:
    shown = table(samples.report(), samples.profile(), top=1)
    assert [row.line for function in shown.functions for row in function.rows] == [5]
    assert shown.rest == "3 more lines: 3.90 ms (39 % of the step)"
    assert table(samples.report(), samples.profile()).rest == ""


def test_only_columns_with_something_in_them() -> None:
    assert table(samples.report(), samples.profile()).columns == ("forward", "backward", "idle", "sync")


def test_a_run_without_sources_or_steps_still_shows() -> None:
    empty = samples.report(lines=(), steps=replace(samples.report().steps, step_ms=0.0))
    assert table(empty, samples.profile({})).functions == ()
    assert table(samples.report(), samples.profile({})).functions[0].rows[0].source == ""


def test_text_from_a_stranger_controls_nothing() -> None:
    assert printable("\ta\x1b[31mb\u202ec") == "    a\ufffd[31mb\ufffdc"


def test_names_are_as_short_as_they_can_be() -> None:
    assert names({"/a/x/train.py", "/a/y/train.py", "/a/model.py"}, "/a") == {
        "/a/x/train.py": "x/train.py",
        "/a/y/train.py": "y/train.py",
        "/a/model.py": "model.py",
    }
    assert short_path("/a/x/train.py", "/a") == "x/train.py"


def test_exchanges_between_ranks_are_a_kind_of_time_of_their_own() -> None:
    made = samples.profile()
    assert not any("ranks" in line for line in table(samples.report(), made).summary)
    totals = {"communication_ms": 6.0, "exposed_communication_ms": 4.0, "collective_wait_ms": 0.5}
    assert table(samples.report(), replace(made, totals=totals)).summary[-1] == (
        "communication between ranks: 6.00 ms a step, 4.00 ms of it not overlapped with compute, "
        "0.50 ms waiting for the last rank"
    )
    # Gloo's are no work of a device, and another rank need not be known.
    assert table(samples.report(), replace(made, totals={"exposed_communication_ms": 4.0})).summary[-1] == (
        "communication between ranks: 4.00 ms a step not overlapped with compute"
    )
