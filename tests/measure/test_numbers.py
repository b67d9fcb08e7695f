"""Numbers that fixes write are found in the new text and changed there alone."""

from __future__ import annotations

from warpline.measure import numbers
from warpline.measure.numbers import Number
from warpline.model.change import LargerBatch, LoaderWorkers, RemoveSyncs

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
    assert numbers.renumbered(RemoveSyncs(), {"num_workers": Number(8, 4)}) == RemoveSyncs()
