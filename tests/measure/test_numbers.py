"""Numbers that fixes write are found in the new text and changed there alone."""

from __future__ import annotations

from warpline.measure import numbers
from warpline.measure.numbers import Number
from warpline.model.change import LargerBatch, LoaderWorkers, RemoveSyncs, Scale, Together

PLAIN = "a = DataLoader(d, num_workers=0)\nb = DataLoader(e, num_workers=2)\n"
FIXED = "a = DataLoader(d, num_workers=6, pin_memory=True)\nb = DataLoader(e, num_workers=2)\n"


def test_the_number_that_the_fix_wrote_is_found() -> None:
    found = list(numbers.written(LoaderWorkers(6), {"/a.py": PLAIN}, {"/a.py": FIXED}))
    assert found == [("num_workers", 6)]


def test_a_config_dict_is_as_good_as_a_call() -> None:
    found = numbers.written(
        LargerBatch(2.0), {"/a.py": 'c = {"batch_size": 8}\n'}, {"/a.py": 'c = {"batch_size": 16}\n'}
    )
    assert list(found) == [("batch_size", 16)]


def test_a_multiple_of_a_batch_size_is_a_number_too() -> None:
    plain, fixed = {"/a.py": "a = DataLoader(d, BATCH)\n"}, {"/a.py": "a = DataLoader(d, 2 * BATCH)\n"}
    assert list(numbers.written(LargerBatch(2.0), plain, fixed)) == [("batch_size", 2)]
    other = numbers.substituted(plain["/a.py"], fixed["/a.py"], "batch_size", 8)
    assert other == "a = DataLoader(d, 8 * BATCH)\n"


def test_the_number_in_an_option_or_in_a_name_of_theirs_is_found() -> None:
    change = LoaderWorkers(9)
    for old, new in (
        ("parser.add_argument('-j', '--workers', default=4, type=int)\n",) * 2,
        ("LOADER_WORKERS = 4\n",) * 2,
        ("    workers: int = 4\n",) * 2,
    ):
        new = new.replace("4", "9")
        assert list(numbers.written(change, {"/a.py": old}, {"/a.py": new})) == [("num_workers", 9)], new
        assert numbers.substituted(old, new, "num_workers", 16) == new.replace("9", "16")


def test_what_compiles_is_known() -> None:
    assert numbers.compiles({}, {"/a.py": "model.compile()\n"})
    assert numbers.compiles({}, {"/a.py": "@torch.compile\ndef f(): pass\n"})
    assert not numbers.compiles({"/a.py": "re.compile('a')\n"}, {"/a.py": "re.compile('a')\nx = 1\n"})


def test_a_change_without_a_number_has_none() -> None:
    assert not list(numbers.written(RemoveSyncs(), {"/a.py": PLAIN}, {"/a.py": FIXED}))
    assert not list(numbers.written(None, {"/a.py": PLAIN}, {"/a.py": FIXED}))


def test_only_the_lines_of_the_fix_get_the_other_number() -> None:
    found = numbers.substituted(PLAIN, FIXED, "num_workers", 12)
    assert found == FIXED.replace("num_workers=6", "num_workers=12")


def test_values_stay_within_the_cores() -> None:
    assert numbers.others("num_workers", 4, cores=6) == [2, 6]
    assert numbers.others("num_workers", 1, cores=1) == []


def test_a_change_follows_its_number() -> None:
    assert numbers.renumbered(LoaderWorkers(4), {"num_workers": Number(8, 4)}) == LoaderWorkers(8)
    assert numbers.renumbered(LargerBatch(2.0), {"batch_size": Number(64, 32)}) == LargerBatch(4.0)
    all_of_it = LargerBatch(3.0, epoch=3)
    assert numbers.renumbered(LargerBatch(2.0, epoch=3), {"batch_size": Number(64, 32)}) == all_of_it
    assert numbers.renumbered(RemoveSyncs(), {"num_workers": Number(8, 4)}) == RemoveSyncs()


def test_a_number_in_changes_that_were_put_together_is_found_too() -> None:
    change = Together((Scale((("/a.py", 1),), device=0.5), LargerBatch(2.0)))
    plain, fixed = {"/a.py": "f(batch_size=8)\n"}, {"/a.py": "f(batch_size=16)\n"}
    assert list(numbers.written(change, plain, fixed)) == [("batch_size", 16)]
    *_, larger = numbers.parts(numbers.renumbered(change, {"batch_size": Number(64, 16)}))
    assert larger == LargerBatch(8.0)
