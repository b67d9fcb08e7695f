"""Measures the assumed figures that no recording shows, with plain torch, and keeps what it saw.

    python benchmarks/figures.py --out benchmarks/figures/NAME.json [--device cuda] [--seconds 100]

Replacements (fused optimizers, padded products, narrower numbers, convolutions) are tried with the same code
that tries them after a profile (``capture/runner/probing``), on the shapes of common models: what a figure
stands for is what that would have found. The others are timed here. ``fit.py`` reads every file of
``benchmarks/figures`` and puts range and number of samples into ``costs.json``.

On a CPU it measures what has a meaning there, on one thread by the processor's time, so that a busy machine
can be used. The file is written after each figure; what there was no time for is named.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

import torch
from figuring import (  # beside this file
    MODELS,
    Samples,
    batches_indexed,
    batches_taken,
    made_on_device,
    reached,
    unset,
)

from warpline.capture.probing import probe
from warpline.wire.probing import Question, Tensor
from warpline.wire.run import Request

OPTIMIZERS = {
    "fused-adam": ("Adam",),
    "fused-adamw": ("AdamW",),
    "fused-sgd": ("SGD", "momentum"),
    "fused-adagrad": ("Adagrad",),
}
#: (rows, inner, columns), the size that does not fit, what it is padded to.
ODD = [
    ((8192, 1024, 50257), 50257, 50304),
    ((4096, 513, 2048), 513, 576),
    ((16384, 300, 300), 300, 320),
    ((2048, 1000, 4095), 4095, 4096),
    ((32768, 129, 256), 129, 192),
]
DOUBLES: list[tuple[tuple[int, ...], ...]] = [
    *(((1 << 14,),), ((1 << 20,),), ((1 << 24,),)),
    *(((512, 512), (512, 512)), ((2048, 1024), (1024, 2048))),
]
#: Image, weight, stride, groups.
CONVOLUTIONS = [
    ((32, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    ((32, 128, 56, 56), (256, 128, 3, 3), 2, 1),
    ((32, 256, 28, 28), (512, 256, 1, 1), 1, 1),
    ((32, 512, 14, 14), (512, 512, 3, 3), 1, 1),
    ((64, 3, 224, 224), (64, 3, 7, 7), 2, 1),
    ((16, 96, 56, 56), (96, 1, 7, 7), 1, 96),
    ((8, 32, 256, 256), (32, 32, 3, 3), 1, 1),
    ((8, 64, 128, 128), (64, 64, 5, 5), 1, 1),
]


def tried(device: str) -> Iterator[tuple[str, str, Question]]:
    """(figure, sample, what to try); the share is that of the device's time."""
    if device == "cuda":
        yield from _of_kernels()
        return
    for figure, words in OPTIMIZERS.items():
        for name, shapes in MODELS.items():
            tensors = tuple(Tensor(shape) for count, shape in shapes for _ in range(count))
            if sum(prod(one.shape) for one in tensors) < 1 << 23:
                yield figure, name, Question("optimizer", tensors, words)
    for shapes in DOUBLES:
        tensors = tuple(Tensor(shape, "double") for shape in shapes)
        yield "single-precision", named(shapes), Question("narrower", tensors)


def _of_kernels() -> Iterator[tuple[str, str, Question]]:
    """What has a meaning on a GPU only; those that no recording shows either."""
    for (rows, inner, columns), size, wide in ODD:
        for dtype in ("c10::BFloat16", "c10::Half"):
            pair = Tensor((rows, inner), dtype), Tensor((inner, columns), dtype)
            name = f"{rows}x{inner}x{columns} {dtype[5:]}"
            yield "misaligned", name, Question("padded", pair, (str(size), str(wide)))
    for image, weight, stride, groups in CONVOLUTIONS:
        edge = weight[-1] // 2
        words = (f"{stride}x{stride}", f"{edge}x{edge}", "1x1", str(groups))
        for dtype in ("float", "c10::BFloat16"):
            pair = Tensor(image, dtype), Tensor(weight, dtype)
            name = f"{named((image, weight))} {dtype.rpartition(':')[2]}"
            yield "conv-search", name, Question("convolution", pair, (*words, "benchmark"), True)
            yield "conv-layout", name, Question("convolution", pair, (*words, "channels_last"), True)


def named(shapes: tuple[tuple[int, ...], ...]) -> str:
    return " by ".join("x".join(map(str, shape)) for shape in shapes)


def replacements(device: str, seconds: float) -> Samples:
    wanted = list(tried(device))
    request = Request(target="", cwd=str(ROOT), python=sys.executable)
    questions = [question for _, _, question in wanted]
    answers = probe(request, questions, seconds, device=device, threads=None if device == "cuda" else 1)
    known = {one.question: one for one in answers.answers}
    found: Samples = {}
    for figure, name, question in wanted:
        answer = known.get(question)
        if answer is None or answer.before is None or answer.after is None:
            print(f"{figure}, {name}: {answer.error if answer else 'no time left'}", file=sys.stderr)
            continue
        share = answer.after.device_ns / answer.before.device_ns
        # Of a search and a layout the figure is what they save.
        found.setdefault(figure, {})[name] = 1 - share if figure.startswith("conv-") else share
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--seconds", type=float, default=100.0, help="for all of it (100)")
    options = parser.parse_args()
    ends = time.monotonic() + options.seconds
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    kept: dict[str, Any] = {"device": device, "torch": torch.__version__}
    kept["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    found: Samples = {}

    def keep(some: Samples) -> None:
        found.update({figure: values for figure, values in some.items() if values})
        options.out.write_text(json.dumps({**kept, "figures": found}, indent=1) + "\n", encoding="utf-8")

    # The importing of torch is not part of the seconds that the trials are given.
    keep(replacements(options.device, max(10.0, 0.4 * options.seconds)))
    works: list[tuple[str, Callable[[], Samples]]] = []
    torch.set_num_threads(1)
    unsets = "gradients-unset" if options.device == "cuda" else "gradients-unset-cpu"
    if options.device == "cuda":
        works += [("made-on-device", lambda: {"made-on-device": made_on_device()}), ("reached", reached)]
    works += [
        (unsets, lambda: {unsets: unset(options.device)}),
    ]
    if options.device != "cuda":
        works.append(("batch-take-share", lambda: {"batch-take-share": batches_taken()}))
        works.append(("batch-index-share", lambda: {"batch-index-share": batches_indexed()}))
    for name, work in works:
        if time.monotonic() >= ends:
            print(f"{name}: no time left", file=sys.stderr)
            continue
        began = time.monotonic()
        try:
            keep(work())
        except (RuntimeError, OSError) as error:  # no compiler, no room: the other figures do not need it
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    for figure, values in found.items():
        low, high = min(values.values()), max(values.values())
        print(f"{figure}: {median(values.values()):.3g} ({low:.3g} to {high:.3g})")
        print("   ", ", ".join(f"{name} {value:.3g}" for name, value in values.items()))


if __name__ == "__main__":
    main()
