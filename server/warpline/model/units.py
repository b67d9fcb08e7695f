"""Formats numbers for people: times, shares, bytes, counts, ratios. All messages use these functions.

A number is shown with about three significant digits, never more than were measured. A value that is not zero
is never shown as zero.
"""

from __future__ import annotations

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
#: From this ratio on, a slowdown is written as a factor, which is easier to read than a percentage.
_LONG = 3.0
_COUNT_UNITS = ("", "k", "M", "G", "T", "P")


def ms(value: float) -> str:
    """A time given in milliseconds: ``ms(12.4) == "12.4 ms"``, ``ms(0.0004) == "<0.001 ms"``.

    From ten seconds on it is shown in seconds.
    """
    if abs(value) >= 10_000:
        return f"{value / 1000:.1f} s"
    return f"{milliseconds(value)} ms"


def milliseconds(value: float) -> str:
    """The number of :func:`ms` without its unit, for columns that are headed by it."""
    return _digits(value, smallest=0.001)


def seconds(value: float) -> str:
    """A duration for people, given in seconds: ``45 s``, ``3 min 20 s``."""
    whole = max(0, round(value))
    return f"{whole} s" if whole < 90 else f"{whole // 60} min {whole % 60} s"


def percent(ratio: float) -> str:
    """A share given as 0..1: ``percent(0.38) == "38 %"``, ``percent(0.004) == "0.4 %"``."""
    return percentage(ratio * 100)


def percentage(value: float) -> str:
    """A share given as 0..100, as the report has it: ``percentage(38.2) == "38 %"``."""
    magnitude = abs(value)
    if magnitude == 0:
        return "0 %"
    if magnitude < 0.1:
        return "<0.1 %"
    # Only exactly 100 is shown as "100 %": 99.97 % attributed is not everything.
    if 99.5 <= magnitude < 100:
        return f"{min(magnitude, 99.9):.1f} %"
    return f"{value:.1f} %" if magnitude < 9.95 else f"{value:.0f} %"


def size(value: float) -> str:
    """An amount of memory given in bytes: ``size(2 * 2**30) == "2.0 GiB"``."""
    amount = float(value)
    for unit in _BYTE_UNITS:
        if abs(amount) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" or abs(amount) >= 100 else f"{amount:.1f} {unit}"


def count(value: float) -> str:
    """A number of calls, launches or events: ``count(3) == "3"``, ``count(2.5) == "2.5"``."""
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    if abs(value) < 100:
        return f"{value:.1f}"
    return f"{value:,.0f}".replace(",", " ")


def rate(value: float, unit: str) -> str:
    """A large figure with a prefix: ``rate(6.2e13, "FLOP/s") == "62.0 TFLOP/s"``."""
    amount = float(value)
    for prefix in _COUNT_UNITS:
        if abs(amount) < 1000 or prefix == _COUNT_UNITS[-1]:
            break
        amount /= 1000
    return f"{amount:.0f} {prefix}{unit}" if abs(amount) >= 100 else f"{amount:.1f} {prefix}{unit}"


def speedup(value: float) -> str:
    """A multiple of another time, such as the median: ``"2.6 times"``. For gains, see :func:`gain`."""
    return f"{value:.1f} times" if abs(value) >= 1.995 else f"{value:.2f} times"


def gain(ratio: float) -> str:
    """A ratio of times, before / after a change: ``"1.10x"``; below 1 ``"28 % slower"``; if the step takes
    three times as long or longer, ``"17.9 times as long"``."""
    slower = 1 / ratio - 1 if ratio > 0 else 0.0
    if slower >= _LONG - 1:
        return f"{1 + slower:.1f} times as long"
    if slower >= 0.005:
        return f"{percent(slower)} slower"
    return f"{_ratio(ratio)}x"


def interval(low: float, high: float) -> str:
    """The bounds of a :func:`gain`, with the same number of digits: ``"1.09 to 1.12"``."""
    return f"{_ratio(low)} to {_ratio(high)}"


def measured(speedup: float, low: float, high: float) -> str:
    """A measured gain with its 95 % interval: ``"1.10x (1.09 to 1.12)"``; if that holds 1, ``"no measurable
    gain (0.98 to 1.03)"``."""
    said = "no measurable gain" if low <= 1.0 <= high else gain(speedup)
    return f"{said} ({interval(low, high)})"


def slowdown(ratio: float) -> str:
    """A ratio of times, after / before: ``slowdown(1.5) == "50 % slower"``, ``slowdown(0.8) == "20 % less"``,
    ``slowdown(1.0) == "the same"``."""
    if ratio <= 0 or abs(ratio - 1) < 0.005:
        return "the same"
    return gain(1 / ratio) if ratio > 1 else f"{percent(1 - ratio)} less"


def evidence(value: float, unit: str) -> str:
    """One number of a finding's evidence in its own unit: ``"ms"``, ``"bytes"``, ``"percent of step"``, …"""
    if unit == "ms":
        return ms(value)
    if unit == "s":
        return seconds(value)
    if unit == "bytes":
        return size(value)
    if unit == "count":
        return count(value)
    if unit.startswith("percent"):
        return percentage(value) + unit.removeprefix("percent")
    return f"{count(value)} {unit}".rstrip()


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def _digits(value: float, smallest: float) -> str:
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    if magnitude < smallest:
        return f"<{smallest:g}"
    if magnitude < 0.0995:
        return f"{value:.3f}"
    if magnitude < 9.95:
        return f"{value:.2f}"
    return f"{value:.1f}" if magnitude < 99.95 else f"{value:.0f}"
