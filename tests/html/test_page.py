"""The page: everything in it, everything escaped, nothing from elsewhere."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import msgspec

from tests import samples
from warpline.html.compared import Against
from warpline.html.composition import bar
from warpline.html.page import page
from warpline.model.profile import Kernel
from warpline.model.report import Composition, KernelUse
from warpline.view.compare import compare

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(HTMLParser):
    """Fails on a tag that is closed out of order; collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_everything_is_on_it() -> None:
    words = " ".join(read(page(samples.report(), samples.profile())).words)
    for expected in (
        "10.0 ms",
        "for x, y in loader:",
        "Net.forward",
        "loader-without-workers",
        "2.50x",
        "gemm<float>",
        "aten::addmm",
        "64×8 8×8",
        "memory-bound: 6.0 % of peak",
        "2.0 MiB held",
        "Not attributed to any line",
        "the clocks were throttled",
    ):
        assert expected in words


def block(text: str) -> dict[str, Any]:
    """The data for the page's script."""
    found = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', text)
    assert found
    read: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return read


def test_nothing_from_elsewhere_and_one_script_that_the_policy_knows() -> None:
    text = page(samples.report(), samples.profile())
    parser = read(text)
    assert parser.tags.count("script") == 2  # the other one is data
    assert not {name for name, _ in parser.attributes} & {"src", "style", "onclick", "onload", "onerror"}
    links = [value or "" for name, value in parser.attributes if name == "href"]
    rules = text[text.index('id="rules"') : text.index('id="data"')]
    assert all(link.startswith("#") or f'"{link}"' in rules for link in links)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (policy,) = (
        value for name, value in parser.attributes if name == "content" and "default-src" in str(value)
    )
    hashes = [base64.b64encode(sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import", style)


def test_the_numbers_are_those_of_the_json_report() -> None:
    report = samples.report()
    found = block(page(report, samples.profile()))
    assert found["report"] == json.loads(msgspec.json.encode(report))
    assert found["sources"] == samples.SOURCES
    assert found["names"] == {samples.SCRIPT: "train.py", samples.MODEL: "model.py"}


def test_kernels_of_no_line_are_there_too() -> None:
    kernel = Kernel("void gemm<float>(int)", "forward", 2.0, 0.5)
    found = block(page(samples.report(), samples.profile(unattributed_kernels=(kernel,))))
    assert found["rest"]["kernels"] == [
        {"name": kernel.name, "phase": "forward", "count": 2.0, "device_ms": 0.5}
    ]
    assert found["kernels"][kernel.name] == "gemm<float>"


def test_a_trace_alone_is_not_called_timed() -> None:
    steps = replace(samples.report().steps, profiled_step_ms=10.0, slowdown=1.0)
    text = page(samples.report(steps=steps), samples.profile())
    assert "a step, under the profiler" in text
    assert "without the profiler</div>" not in text


def test_the_bar_has_every_part_and_its_time() -> None:
    text = page(samples.report(), samples.profile())
    widths = [
        float(width)
        for width in re.findall(r'<rect class="part \w+" x="[\d.]+" y="0" width="([\d.]+)"', text)
    ]
    assert widths == [550, 75, 200, 125, 25, 25]
    shown = dict(re.findall(r'<b data-part="(\w+)">([^<]*)</b>', text))
    assert shown["loader"] == "5.50 ms"
    assert "communication" not in shown


def test_a_report_from_before_there_was_a_composition() -> None:
    text = page(samples.report(composition=None), samples.profile())
    assert 'data-part="' not in text
    assert "made by an older version" in text


def test_a_finding_has_its_diff_and_its_rule() -> None:
    words = "".join(read(page(samples.report(), samples.profile())).words)
    assert "-loader = DataLoader(data)\n+loader = DataLoader(data, num_workers=8)" in words
    assert "num_workers" in words.split("Rules\n")[1]


def test_what_stands_in_backticks_is_code() -> None:
    finding = replace(samples.report().findings[0], message="`forward` runs <b> of them; a ` alone")
    text = page(samples.report(findings=(finding,)), samples.profile())
    assert "<p><code>forward</code> runs &lt;b&gt; of them; a ` alone</p>" in text


def test_the_same_run_makes_the_same_page() -> None:
    assert page(samples.report(), samples.profile()) == page(samples.report(), samples.profile())


def test_two_runs_are_compared() -> None:
    before, after = samples.report(), samples.report(steps=replace(samples.report().steps, step_ms=8.0))
    against = Against("earlier", before, compare(before, after, samples.SOURCES, samples.SOURCES))
    text = page(after, samples.profile(), against=against)
    words = " ".join(read(text).words)
    assert "Compared with earlier" in words
    assert "10.0 ms a step before, 8.00 ms after" in words
    assert text.count('data-part="loader">5.50 ms<') == 2  # a bar for each


def test_bars_of_two_runs_have_one_scale() -> None:
    parts = Composition(0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0)
    assert 'width="1000.00"' in bar(parts)
    assert 'width="250.00"' in bar(parts, whole_ms=20.0)


def test_what_a_stranger_wrote_is_escaped() -> None:
    evil = "<script>alert(1)</script>\"'&"
    line = replace(
        samples.report().lines[0], function=evil, kernels=(KernelUse(evil, "forward", 1, 1.0),), step_ms=9.0
    )
    report = samples.report(lines=(line,), argv=(evil,), notes=(evil,))
    parser = read(page(report, samples.profile({samples.SCRIPT: f"\n\n\n\n{evil}\n"})))
    assert parser.tags.count("script") == 2
    assert "".join(parser.words).count("alert(1)") >= 5
