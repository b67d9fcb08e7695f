"""Every number of a message is evidence."""

from __future__ import annotations

import pytest

from warpline.rulekit.message import NUMBER, count, message, ms, percent, size


def test_numbers_come_from_evidence() -> None:
    text = message(
        "waits {wait} ({share}), {size}, {n} workers, bf16 and conv2d are names",
        {"wait": ms("w", 41.6), "share": percent("w", 61.2), "size": size("s", 2**30), "n": count("n", 8)},
    )
    assert text == "waits 41.6 ms (61 %), 1.0 GiB, 8 workers, bf16 and conv2d are names"
    assert NUMBER.findall(text) == ["41.6", "61", "1.0", "8"]


def test_a_number_in_a_template_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="16"):
        message("use 16 workers", {})
    with pytest.raises(KeyError):
        message("waits {other}", {"wait": ms("w", 1)})
