"""The page: everything in it, everything escaped, nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from tests import samples
from warpline.html.page import page
from warpline.model.report import KernelUse

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(HTMLParser):
    """Fails on a tag that is closed out of order; collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
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
        "2.5 times as fast",
        "gemm<float>",
        "aten::addmm",
        "64×8 8×8",
        "memory-bound: 6.0 % of peak",
        "2.0 MiB held",
        "Not attributed to any line",
        "the clocks were throttled",
    ):
        assert expected in words


def test_nothing_from_elsewhere_and_no_script() -> None:
    text = page(samples.report(), samples.profile())
    parser = read(text)
    assert "script" not in parser.tags
    assert not {name for name, _ in parser.attributes} & {"src", "href", "onclick"}
    assert not re.search(r"url\(|@import|https?:", text)


def test_what_a_stranger_wrote_is_escaped() -> None:
    evil = "<script>alert(1)</script>\"'&"
    line = replace(
        samples.report().lines[0], function=evil, kernels=(KernelUse(evil, "forward", 1, 1.0),), step_ms=9.0
    )
    report = samples.report(lines=(line,), argv=(evil,), notes=(evil,))
    parser = read(page(report, samples.profile({samples.SCRIPT: f"\n\n\n\n{evil}\n"})))
    assert "script" not in parser.tags
    assert "".join(parser.words).count("alert(1)") >= 5
