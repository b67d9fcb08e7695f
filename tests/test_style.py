"""Texts that a user reads are in plain English (docs/glossary.md)."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

from tests.conftest import ROOT
from warpline.model import units

#: What was once written so, and what is written now.
INSTEAD = {
    r"\bwith the profiler on only\b": "measured only under the profiler",
    r"\bfor what one\b.*\bdoes\b": "say what does it: one fused kernel forward and one backward",
    r"\btold from noise\b": "no measurable gain",
    r"\btimes as (fast|quick)\b": "1.10x; 28 % slower (units.gain)",
    r"\b[Ll]et the gradients go\b": "Reset gradients to None",
    r"\bout of the \w+'s sight\b": "Call gc.freeze() before the loop",
    r"\bgains nothing even\b": "nothing: it says the same twice",
    r"\bas long as it is(?! not| the same| there)\b": "Find the lines that slow down your training step",
    r"\bnext to nothing\b": "almost no time",
    r"\banew\b": "again; a loader restarts its workers",
    r"\bevery so many\b": "every N steps",
    r"\b(?:does|do|is|are) so already\b|\balready so\b": "say what: the script already does this",
    r"\bat hand\b": "available",
    r", say[,)]": "such as an evaluation",
    r"\bat the begin\b": "at the start",
    r"\bin the mean\b": "on average",
    r"\bnobody can say\b": "it is unknown",
    r"\bworth a word\b": "not reported",
    r"\bbeside no computation\b|\bthat no computation hides\b": "not overlapped with compute",
    r"\bgoes? the other way round\b": "the order alternates",
    r"\b[Mm]ake batches\b|\bbatches are made\b": "load batches; prefetch",
    r"\bleft as (?:it is|they are)\b": "was not changed",
    r"\blaid out channel by channel\b": "NCHW; channels_last",
    r"\b[Cc]opy without waiting\b": "non_blocking=True",
    r"\bof which\b": "'with', or two sentences",
    r"\bnobody\b(?! can say)": "say what happens: unknown, not read, free",
    r"\b(?:told|tell|tells|telling) (?:\w+ )?apart\b": "distinguish; or name the difference",
    r"\b(?:is|are|was) said (?:of|to)\b|\bnothing is said\b": "reported, shown",
    r"\bheld against\b": "compared with",
    r"\bled back to\b": "attributed to",
    r"\bspeaks? of\b|\bspoken of\b": "refers to",
    r"\bbrings? home\b": "returns",
    r"\bcame of (?:it|that|a|one|them)\b": "the result",
    r"\b[Nn]ot mended\b|\b(?:is|are|was|were|since) mended\b": "fixed",
    r"\bat whatever\b": "at any",
    r"\bquite nothing\b": "zero",
    r"\bis quicker than it is\b": "is faster",
    r"\bwhose it is\b|\bwhose they are\b": "say which: the line's, the library's",
}
#: One text for each of the patterns, as they stood in the product.
OLD = (
    "12.0 ms a step, known with the profiler on only",
    "0.23 ms a step, 3.2 %, for what one fused kernel a pass does.",
    "no gain that can be told from noise",
    "measured: 0.78 times as fast (0.71 to 0.86)",
    "Let the gradients go",
    "Take what exists before the loop out of the collector's sight",
    "What gains nothing even at the most gains nothing.",
    "Which source line makes a training step as long as it is",
    "It takes next to nothing",
    "The workers are started anew for every epoch",
    "Read the value every so many steps only",
    "the script does so already",
    "the script's own text is not at hand",
    "some captured steps did something else as well (an evaluation, say)",
    "at the begin of the run",
    "2 ranks, 11.2 ms a step in the mean",
    "Of several nobody can say which one it is",
    "what costs less is not worth a word",
    "Communication that no computation hides takes 4 ms",
    "every other round goes the other way round",
    "Make batches in 2 worker processes",
    "it was left as it is",
    "images laid out channel by channel",
    "Copy without waiting",
    "Embeddings of which a step reads few rows",
    "nobody has read it yet",
    "Steps are not told apart",
    "nothing is said within their noise",
    "predictions were held against the gains",
    "kernels led back to the lines that were captured",
    "the run that the command speaks of",
    "run the target and bring home a run folder",
    "a prediction and what came of it",
    "Not mended: the size is computed",
    "found at whatever line",
    "never quite nothing",
    "the host is quicker than it is",
    "Python frames, and whose they are",
)
PAGES = (
    "README.md",
    "extension/README.md",
    "package.json",
    "pyproject.toml",
    "docs/*.md",
    "docs/editors/*.md",
    "examples/*/README.md",
    "CONTRIBUTING.md",
    "server/ARCHITECTURE.md",
)


#: The same without word boundaries: more is found, seven times as fast.
_QUICKLY = [pattern.replace(r"\b", "") for pattern in INSTEAD]
#: Between two lines of a comment, or two parts of a string.
_BETWEEN = re.compile(r'\n\s*#:? ?|"\s*\n\s*f?"')


def flat(text: str) -> str:
    return " ".join(text.split())


def mannered(text: str) -> list[str]:
    return [instead for pattern, instead in INSTEAD.items() if re.search(pattern, flat(text))]


@pytest.mark.parametrize("text", OLD)
def test_each_old_text_is_caught(text: str) -> None:
    assert len(mannered(text)) == 1


def strings(path: Path) -> list[tuple[int, str]]:
    """``(line, text)`` of every string in a Python file; docstrings too, since rule pages are docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [(node.lineno, node.value) for node in nodes if isinstance(node.value, str)]


def comments(path: Path) -> list[tuple[int, str]]:
    """``(line, text)`` of the comments in a Python file; neighbouring lines are one."""
    found: list[tuple[int, str]] = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                row, text = token.start[0], token.string.lstrip("#: ")
                if found and found[-1][0] + found[-1][1].count("\n") == row - 1:
                    found[-1] = found[-1][0], f"{found[-1][1]}\n{text}"
                else:
                    found.append((row, text))
    return found


def test_no_text_of_the_product_is_written_so() -> None:
    """Strings, docstrings and comments."""
    sources = sorted((ROOT / "server/warpline").rglob("*.py"))
    assert sources
    found = []
    for path in sources:
        whole = _BETWEEN.sub(lambda met: " " if "#" in met[0] else "", path.read_text(encoding="utf-8"))
        whole = flat(whole)  # a quick look at all of it, strings and comments joined over their lines
        if any(re.search(pattern, whole) for pattern in _QUICKLY):
            texts = (*strings(path), *comments(path))
            found += [(path, line, said) for line, text in texts for said in mannered(text)]
    assert not found, "\n".join(f"{path}:{line}: better: {said}" for path, line, said in found)


def test_comments_are_read(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1  # one\n\n#: two\n# three\ny = '# none'\n")
    assert comments(file) == [(1, "one"), (3, "two\nthree")]


@pytest.mark.parametrize("pattern", PAGES)
def test_no_page_is_written_so(pattern: str) -> None:
    pages = [path for path in ROOT.glob(pattern) if path.name != "glossary.md"]
    assert pages
    found = [(path, said) for path in pages for said in mannered(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(f"{path}: better: {said}" for path, said in found)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (2.0, "2.00x"),
        (1.04, "1.04x"),
        (1.0, "1.00x"),
        (0.78, "28 % slower"),
        (1 / 17.9, "17.9 times as long"),
    ],
)
def test_a_gain_is_one_kind_of_words(ratio: float, text: str) -> None:
    assert units.gain(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.5, "50 % slower"), (8.0, "8.0 times as long"), (1.002, "the same"), (0.8, "20 % less")],
)
def test_so_is_a_slowdown(ratio: float, text: str) -> None:
    assert units.slowdown(ratio) == text
