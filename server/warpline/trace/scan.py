"""Finds the ends of events in the text of a Chrome trace without parsing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BETWEEN = b"\n  },\n"  # Kineto's text between two events; a JSON string cannot contain a line feed
#: The end of one object and the beginning of the next. It may also match in a string, or inside an event.
EVENT_ENDS = re.compile(rb"\}\s*,\s*\{")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_ESCAPE = re.compile(rb"\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..")
_HALF = 6  # characters of the escape for half of a UTF-16 pair
_TRIES = 4  # possible ends that are tried in a piece, before more text is read; each try is a parse
_NEAR = 1 << 14  # bytes at the end of a text that are searched first


def last_ends(text: bytes) -> Iterator[tuple[int, int]]:
    """A few positions where an event may end in ``text`` and the next one begin, the last ones first."""
    if (cut := text.rfind(_BETWEEN)) >= 0:
        yield cut + 4, cut + 5
    ends = list(EVENT_ENDS.finditer(text, max(0, len(text) - _NEAR))) or list(EVENT_ENDS.finditer(text))
    for end in ends[: -_TRIES - 1 : -1]:
        yield end.start() + 1, end.end() - 1


def first_end(text: bytes) -> tuple[int, int] | None:
    """The positions where the first event in ``text`` seems to end, and where the next one begins."""
    if (cut := text.find(_BETWEEN)) >= 0:
        return cut + 4, cut + 5
    end = EVENT_ENDS.search(text)
    return None if end is None else (end.start() + 1, end.end() - 1)


@dataclass(slots=True)
class Split:
    events: list[bytes]
    rest: bytes  # an incomplete event, or the text after the list
    ended: bool  # whether the list of events has ended


def split(text: bytes) -> Split:
    """The objects of a list, each as raw text; ``text`` begins in the list, between two objects."""
    events: list[bytes] = []
    depth, begin = 0, 0
    for token in _TOKEN.finditer(text):
        letter = text[token.start()]
        if letter in b"{[":
            if depth == 0:
                begin = token.start()
            depth += 1
        elif letter in b"}]":
            if depth == 0:
                if letter == 0x5D:
                    return Split(events, text[token.end() :], True)
                continue
            depth -= 1
            if depth == 0:
                events.append(text[begin : token.end()])
                begin = token.end()
    return Split(events, text[begin:].lstrip(b" \t\r\n,") if depth == 0 else text[begin:], False)


def mended(raw: bytes) -> bytes:
    """The JSON text ``raw`` with invalid UTF-8, and unpaired UTF-16 surrogates, replaced by U+FFFD."""
    text = raw.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda found: b"\\ufffd" if len(found[0]) == _HALF else found[0], text)
