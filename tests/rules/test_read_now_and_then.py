"""Values that are read now and then: the edit accumulates them on the device, and reads them there."""

from __future__ import annotations

import pytest
import torch

from tests.annotated import read_example, texts
from tests.rules.test_no_breakage import fixed, ran
from warpline.diagnosis.diagnose import diagnose

SUM = """\
#> totals idle_ms=8
def run(loader, train, n=4):
    total, told = 0.0, []
    for step, batch in enumerate(loader):
        loss = train(batch)  #> cost device_ms=12 idle_ms=8 step_ms=20
        total += {added}  #> cost calls=1 cpu_ms=9 sync_ms=9; {op}
{body}
    {after}
"""
OP = "op aten::_local_scalar_dense dtypes={dtypes} count=1"
TELL = """\
        if step % 3 == 2:
            print(f"{step}: {total / n:.3f}", total)  #> cost {calls}; {more}
            told.append(total)
            total = 0.0
"""


def code(
    body: str = TELL,
    *,
    added: str = "loss.item()",
    after: str = "return told",
    calls: str = "calls=0.2",
    dtypes: str = "float",
    more: str = "op aten::item count=0.2",
) -> str:
    told = body.replace("{calls}", calls).replace("{more}", more)
    return SUM.format(added=added, body=told.rstrip("\n"), after=after, op=OP.format(dtypes=dtypes))


LOSSES = torch.randn(7, generator=torch.Generator().manual_seed(0))


def edited(*arguments: str, **words: str) -> str:
    (found,) = fixed(code(*arguments, **words), "sync-in-step")
    return found


def test_a_sum_is_read_where_it_is_told_and_begins_anew() -> None:
    text = edited()
    assert "total += loss.detach().double()\n" in text
    assert '{float(total) / n:.3f}", float(total))' in text
    assert "append(float(total))\n            total = 0.0\n    return told" in text
    before, after = ran(read_example(code()).text, LOSSES), ran(text, LOSSES)
    assert before == after
    assert all(type(one) is float for one in after[1])


def test_and_after_the_loop_if_it_is_needed_there() -> None:
    text = edited(after="return total, told")
    assert "    total = float(total)\n    return total, told" in text
    assert ran(read_example(code(after="return total, told")).text, LOSSES) == ran(text, LOSSES)


def test_where_it_is_told_need_not_have_run_yet() -> None:
    text = edited(more="skipped")
    assert "total += loss.detach().double()" in text
    assert "append(float(total))" in text


EACH = "        print(total)\n"
TEST = "        if total > 5:\n            print(step)\n"


@pytest.mark.parametrize(
    ("body", "calls", "told"),
    [
        (TELL, "calls=1", "also read inside the loop"),
        (TELL, "calls=0.6", "also read inside the loop"),
        (EACH, "", "also read inside the loop"),
        (TEST, "", "also read inside the loop"),
        ("        if step % 3 == 2:\n            print(f'{total=}')\n", "", "also read inside the loop"),
        ("        if step % 3 == 2:\n            total /= 3\n", "", "also changed inside the loop"),
        ("        if step % 3 == 2:\n            total = max(told)\n", "", "also changed inside the loop"),
    ],
)
def test_what_is_read_in_each_round_or_changed_stays(body: str, calls: str, told: str) -> None:
    found = edited(body, calls=calls or "calls=0.2")
    assert found.endswith(f"No edit is offered: `total` is {told}.")


def test_a_function_that_is_called_in_the_loop_may_read_it() -> None:
    shown = """\
#> totals idle_ms=8
def show():
    print(total)
total = 0.0
for batch in loader:
    loss = train(batch)  #> cost device_ms=12 idle_ms=8 step_ms=20
    total += loss.item()  #> cost cpu_ms=9 sync_ms=9
    {call}
"""
    (found,) = fixed(shown.format(call="show()"), "sync-in-step")
    assert "No edit is offered: `show` has a `total` as well" in found
    (found,) = fixed(shown.format(call="hide()"), "sync-in-step")
    assert "total += loss.detach().double()\n    hide()\ntotal = float(total)" in found


@pytest.mark.parametrize(
    ("added", "start", "written", "read"),
    [
        ("(loss > 0).sum().item()", "0", "(loss > 0).sum().detach()", "int"),
        ("(loss > 0).sum().item()", "0.0", "(loss > 0).sum().detach().double()", "float"),
        ("(loss > 0).sum().item() / 3", "0", "(loss > 0).sum().detach().double() / 3", "float"),
        ("loss.item() * n", "0", "loss.detach().double() * n", "float"),
        ("loss.item() ** 2", "0", "loss.detach().double() ** 2", "float"),
    ],
)
def test_a_part_of_what_is_added_is_kept_as_it_was(added: str, start: str, written: str, read: str) -> None:
    body = "        if step == 3:\n            print(total)\n"
    given = code(body, added=added, after="return total", dtypes="int64" if "sum" in added else "float")
    given = given.replace("total, told = 0.0, []", f"total = {start}")
    (text,) = fixed(given, "sync-in-step")
    assert f"total += {written}\n" in text
    assert f"total = {read}(total)" in text
    before, after = ran(read_example(given).text, LOSSES), ran(text, LOSSES)
    assert before == after
    assert type(before[1]) is type(after[1])


@pytest.mark.parametrize("added", ["round(loss.item(), 3)", "math.exp(loss.item())", "loss.item() ** 3"])
def test_more_than_arithmetic_needs_the_number(added: str) -> None:
    assert edited(added=added).endswith("No edit is offered: the value is used on the host in every step.")


@pytest.mark.parametrize(
    ("added", "start", "dtype", "safety"),
    [
        ("loss.item()", "0", "float", "safe"),
        ("loss.item() / n", "0", "float", "unsafe"),
        ("votes.sum().item() * n", "0", "int64", "unsafe"),
        ("votes.sum().item()", "0.0", "int64", "safe"),
        # No record tells.
        ("loss.item()", "0", "", "unsafe"),
        ("loss.item()", "0.0", "", "safe"),
    ],
)
def test_only_what_keeps_its_bits_and_its_type_is_safe(
    added: str, start: str, dtype: str, safety: str
) -> None:
    given = BEHIND.replace("loss.item()", added).replace("total = 0", f"total = {start}")
    given = given.replace("dtypes=float", f"dtypes={dtype}" if dtype else "")
    example = read_example(given)
    (found,) = diagnose(example.profile, texts(example)).findings
    assert [one.applicability for one in found.fixes] == [safety]


MEAN = code().replace("{", "{{").replace("}", "}}").replace("total += loss.item()", "total = {}")


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("0.9 * total + 0.1 * loss.item()", True),
        ("total + loss.item()", True),
        ("total + (loss.item() - total) / (step + 1)", False),
    ],
)
def test_a_running_mean_stays_on_the_device(given: str, safe: bool) -> None:
    example = read_example(MEAN.format(given))
    (text,) = fixed(MEAN.format(given), "sync-in-step")
    assert f"total = {given.replace('item()', 'detach().double()')}\n" in text
    assert ran(example.text, LOSSES) == ran(text, LOSSES)
    (found,) = diagnose(example.profile, texts(example)).findings
    assert (found.fixes[0].applicability == "safe") is safe


@pytest.mark.parametrize(
    "given",
    ["loss.item()", "loss.item() if step == 0 else 0.9 * total + loss.item()", "max(total, loss.item())",
     "min(total, 1) + loss.item()"],
)  # fmt: skip
def test_anything_else_that_is_assigned_is_used_on_the_host(given: str) -> None:
    (told,) = fixed(MEAN.format(given), "sync-in-step")
    assert told.endswith("No edit is offered: the value is used on the host in every step.")


BEHIND = """\
#> totals idle_ms=8
right = total = 0
for images, labels in loader:
    scores, loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    total += loss.item()  #> cost cpu_ms=9 sync_ms=9; op aten::item dtypes=float
    right += (scores == labels).sum().item()
    #^ cost cpu_ms=0.1 sync_ms=0.01 syncs=1; site sync what=item calls=1 wait_ms=0.01 direct=true
    #^ op aten::item dtypes=int64
print(total, right)
"""


def test_what_would_wait_in_its_place_is_read_later_too() -> None:
    (found,) = fixed(BEHIND, "sync-in-step")
    assert "right += (scores == labels).sum().detach()\ntotal = float(total)\nright = int(right)\n" in found


def test_but_what_is_printed_stays() -> None:
    printed = BEHIND.replace("right += (scores == labels).sum().item()", "print(loss.item())")
    (found,) = fixed(
        printed.replace("for images", "for step, (images").replace(
            "labels in loader", "labels) in enumerate(loader)"
        ),
        "sync-in-step",
    )
    assert "total += loss.detach().double()\n    print(loss.item())\n" in found


def test_a_list_keeps_copies_of_what_later_steps_write_into() -> None:
    (text,) = fixed(
        """\
#> totals idle_ms=8
def run(loader, train):
    told, loss = [], torch.zeros(())
    for batch in loader:
        loss.copy_(train(batch))  #> cost device_ms=12 idle_ms=8 step_ms=20
        told.append(loss.item())  #> cost calls=1 cpu_ms=9 sync_ms=9
    return told
""",
        "sync-in-step",
    )
    assert len({*ran("import torch\n" + text, LOSSES)[1]}) == 7
