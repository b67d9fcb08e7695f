"""Replacements tried in a child of the interpreter: results are compared, and time is kept."""

from __future__ import annotations

import gc
import io
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import pytest

from warpline.capture import probing
from warpline.wire.probing import (
    COMPILED,
    DATA,
    JOINED,
    KINDS,
    NOT_COMPILING,
    Answer,
    Cost,
    Part,
    Probed,
    Question,
    Tensor,
)
from warpline.wire.run import Request

SMALL = (Tensor((4, 8, 16)),)
#: ``unbind(x)[0] @ w.t()``, then dropout and a change in place, of which the mask is not used.
PART = Part(
    (
        ("aten.unbind.int", ["%0", 0], (2, 3)),
        ("aten.t.default", ["%1"], (4,)),
        ("aten.mm.default", ["%2", "%4"], (5,)),
        ("aten._to_copy.default", ["%5", {"dtype": "float64", "device": None}], (6,)),
        ("aten.native_dropout.default", ["%6", 0.5, True], (7, 8)),
        ("aten.relu_.default", ["%7"], (9,)),
        ("aten.embedding.default", ["%1", "%10"], (11,)),
    ),
    (0, 1, 10),
    (1,),
    (9, 11),
)
GIVEN = (Tensor((2, 8, 16), "float32"), Tensor((4, 16), "float32"), Tensor((3,), "int64"))
COMPILES = Question("compiled", GIVEN, (msgspec.json.encode(PART).decode(),), backward=True)


def attending(kind: str) -> Question:
    """A GPU's fused attention (``kind``: "flash" or "cudnn") with what follows it, to be compiled."""
    given = ["%0", "%1", "%2", *([None, True] if kind == "cudnn" else [])]
    attention = (f"aten._scaled_dot_product_{kind}_attention.default", given, (3, 4, 5, 6))
    part = Part((attention, ("aten.mul.Tensor", ["%3", 2], (7,))), (0, 1, 2), (0, 1, 2), (7,))
    heads = (Tensor((2, 4, 64, 64), "bfloat16"),) * 3
    return Question("compiled", heads, (msgspec.json.encode(part).decode(),), backward=True)


FILTERS = (Tensor((2, 4, 8, 8)), Tensor((4, 4, 3, 3)))
SQUARES = (Tensor((16, 16)), Tensor((16, 16)))
HEADS = (Tensor((2, 2, 8, 4)), Tensor((2, 2, 4, 8), strides=(64, 32, 1, 4)), Tensor((2, 2, 8, 4)))
#: ``relu_(batch_norm(conv2d(x, w)))``
NETWORK = Part(
    (
        ("aten.convolution.default", ["%0", "%1", None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1], (2,)),
        ("aten.batch_norm.default", ["%2", "%3", "%6", None, None, True, 0.1, 1e-05, True], (4,)),
        ("aten.relu_.default", ["%4"], (5,)),
    ),
    (0, 1, 3, 6),
    (0, 1, 2, 3),
    (5,),
)
IMAGES = (Tensor((2, 4, 8, 8), "float32"), Tensor((4, 4, 3, 3), "float32"), *[Tensor((4,), "float32")] * 2)
TURNED = msgspec.json.encode(NETWORK).decode()
#: ``relu(conv1d(x.mT, w)).mT`` with a width of 1, and ``relu(linear(x, w))``.
BY_WIDTH = tuple(
    msgspec.json.encode(Part(operators, (0, 1), (0, 1), (end,))).decode()
    for end, operators in (
        (
            5,
            (
                ("aten.transpose.int", ["%0", 1, 2], (2,)),
                ("aten.convolution.default", ["%2", "%1", None, [1], [0], [1], False, [0], 1], (3,)),
                ("aten.relu.default", ["%3"], (4,)),
                ("aten.transpose.int", ["%4", -1, -2], (5,)),
            ),
        ),
        (
            4,
            (
                ("aten.squeeze.dim", ["%1", 2], (6,)),
                ("aten.linear.default", ["%0", "%6", None], (3,)),
                ("aten.relu.default", ["%3"], (4,)),
            ),
        ),
    )
)
SEQUENCES = (Tensor((2, 5, 6), "float32"), Tensor((4, 6, 1), "float32"))
#: Of a row and its class: ``cross_entropy(row @ w, class)``.
ROUND = Part(
    (
        ("aten.mv.default", ["%2", "%0"], (3,)),
        ("aten.unsqueeze.default", ["%3", 0], (4,)),
        ("aten._log_softmax.default", ["%4", 1, False], (5,)),
        ("aten.unsqueeze.default", ["%1", 0], (6,)),
        ("aten.nll_loss_forward.default", ["%5", "%6", None, 1, -100], (7, 8)),
    ),
    (0, 1, 2),
    (0, 2),
    (7,),
)
#: ``row[mask].max()`` and ``row[mask == 0].min()``
CHOSEN = Part(
    (
        ("aten.index.Tensor", ["%0", ["%1"]], (2,)),
        ("aten.max.default", ["%2"], (3,)),
        ("aten.eq.Scalar", ["%1", 0], (4,)),
        ("aten.index.Tensor", ["%0", ["%4"]], (5,)),
        ("aten.min.default", ["%5"], (6,)),
    ),
    (0, 1),
    (0,),
    (3, 6),
)
#: A batch norm of a linear layer, in inference: ``vmap`` gives it rounds as channels.
LINEAR = Part(
    (
        ("aten.linear.default", ["%0", "%1"], (6,)),
        ("aten.batch_norm.default", ["%6", "%2", "%3", "%4", "%5", False, 0.1, 1e-5, True], (7,)),
    ),
    tuple(range(6)),
    (),
    (7,),
)
NORMED = (Tensor((3, 4, 16), "float32"), Tensor((8, 16), "float32"), *[Tensor((8,), "float32")] * 4)
MASKED = (Tensor((3, 16), "float32"), Tensor((3, 16), "bool"))
#: ``old.mul_(0.9).add_(new * rate, alpha=0.1); old.clamp_(-1, 1)``
UPDATE = Part(
    (
        ("aten.mul_.Tensor", ["%0", 0.9], (3,)),
        ("aten.mul.Tensor", ["%1", "%2"], (4,)),
        ("aten.add_.Tensor", ["%3", "%4", {"alpha": 0.1}], (5,)),
        ("aten.clamp_.default", ["%5", -1.0, 1.0], (6,)),
    ),
    (0, 1, 2),
    (),
    (6,),
)
#: ``old.copy_(0.1 * new + 0.9 * old)``
COPIED = Part(
    (
        ("aten.mul.Tensor", ["%1", 0.1], (2,)),
        ("aten.mul.Tensor", ["%0", 0.9], (3,)),
        ("aten.add.Tensor", ["%2", "%3"], (4,)),
        ("aten.copy_.default", ["%0", "%4"], (5,)),
    ),
    (0, 1),
    (),
    (5,),
)
#: ``old.data = 0.9 * old.data + 0.1 * new``
STORED = replace(COPIED, operators=COPIED.operators[:3], results=(4,))
#: ``grad.clamp_(max=1); (scale * grad).norm()``
NORM = Part(
    (
        ("aten.clamp_.default", ["%0", None, 1.0], (2,)),
        ("aten.mul.Tensor", ["%1", "%2"], (3,)),
        ("aten.linalg_vector_norm.default", ["%3", 2], (4,)),
    ),
    (0, 1),
    (),
    (4,),
)
ROWS = (Tensor((3, 16), "float32"), Tensor((3,), "int64"), Tensor((10, 16), "float32"))
#: A CPU's fused attention of each round's queries and keys, the values of which all rounds have in common.
_ON_CPU = "aten._scaled_dot_product_flash_attention_for_cpu.default"
ATTENDED = Part(((_ON_CPU, ["%0", "%1", "%2", 0.0, True], (3, 4)),), (0, 1, 2), (0, 2), (3,))
HIDDEN = Part(
    (
        ("aten.matmul.default", ["%0", "%2"], (5,)),
        (_ON_CPU, ["%0", "%1", "%2", 0.0, False, {"attn_mask": "%5"}], (3, 4)),
    ),
    (0, 1, 2),
    (),
    (3,),
)
#: ``gate.sigmoid_() * w``: the gate is a piece that is written to, and autograd keeps what it holds then.
GATED = Part(
    (("aten.sigmoid_.default", ["%0"], (2,)), ("aten.mul.Tensor", ["%2", "%1"], (3,))), (0, 1), (0, 1), (3,)
)
TURNS = (*[Tensor((3, 2, 2, 8, 8), "float32")] * 2, Tensor((2, 2, 8, 8), "float32"))
#: A CPU's layer of an LSTM: five steps of two samples.
_OPTIONS = [False, [], 2, 8, 1, True, False, True, True]
STEPPED = Part(
    (("aten.mkldnn_rnn_layer.default", [*(f"%{at}" for at in range(7)), *_OPTIONS], (7, 8, 9, 10)),),
    tuple(range(7)),
    (0, 1, 2, 3, 4),
    (7, 8),
)
LAYER = tuple(
    Tensor(shape, "float32") for shape in ((3, 5, 2, 6), (32, 6), (32, 8), (32,), (32,), (3, 2, 8), (3, 2, 8))
)
ANYWHERE = (
    *(
        Question(kind, SMALL, backward=True)
        for kind in sorted(
            KINDS
            - {
                "attention",
                "fused_attention",
                "optimizer",
                "product",
                "padded",
                "narrower",
                "convolution",
                "cat",
                "lists",
                "loop",
                "recurrent",
                "embedding",
                "topk",
                "windows",
                "pointwise",
                "channels_last",
                "compiled",
            }
        )
    ),
    Question("layer_norm", SMALL, ("var",)),
    Question("layer_norm", (Tensor((2, 6, 4, 4), strides=(96, 1, 24, 6)),), ("dims=1",), backward=True),
    Question("rms_norm", (Tensor((3, 4, 6)),), ("dims=1,2",), backward=True),
    *(
        Question(kind, (Tensor((64, 32), "c10::BFloat16"),), words, backward=True)
        for kind in ("rms_norm", "layer_norm")
        for words in (("cast",), ("cast", "wide"), ("cast", "mixed"), ("mixed",), ("wide",))
    ),
    Question("cross_entropy", (Tensor((16, 10)),), ("one_hot",), backward=True),
    Question("cross_entropy", (Tensor((4, 4, 10)),), ("one_hot", "smooth"), backward=True),
    Question("cross_entropy", (Tensor((16, 10)),), ("by_hand",), backward=True),
    Question("cross_entropy", (Tensor((16, 10)),), ("apart",), backward=True),
    Question("cross_entropy", (Tensor((4, 4, 10)),), ("apart", "by_hand", "smooth"), backward=True),
    Question("attention", HEADS, ("causal",), backward=True),
    Question("attention", HEADS, ("mask",)),
    Question("attention", HEADS, ("mask", "einsum"), backward=True),
    Question("attention", (Tensor((2, 8, 4)), Tensor((2, 4, 8)), Tensor((2, 8, 4))), backward=True),
    Question("fused_attention", (Tensor((2, 8, 16)),) * 3, ("no-heads", "mask"), backward=True),
    Question("fused_attention", (Tensor((2, 4, 8, 16)), *[Tensor((2, 1, 8, 16))] * 2), ("broadcast",)),
    Question("fused_attention", (Tensor((2, 4, 8, 16)),) * 3, ("causal",), backward=True),
    Question("fused_attention", (Tensor((2, 4, 8, 16)),) * 3, ("switched-off", "mask")),
    Question("fused_attention", (Tensor((2, 4, 8, 16)),) * 3, ("bf16",), backward=True),
    Question("optimizer", SQUARES, ("AdamW",)),
    Question("optimizer", SQUARES, ("AdamW", "foreach")),
    Question("optimizer", SQUARES, ("SGD", "momentum")),
    Question("optimizer", SQUARES, ("Adam", "groups", "fused")),
    Question("optimizer", SQUARES, ("AdamW", "apart")),
    Question("product", SQUARES, ("bf16",)),
    Question("padded", (Tensor((16, 15)), Tensor((15, 16))), ("15", "16")),
    Question("padded", (Tensor((16, 15)), Tensor((15, 16))), ("15", "16", "bf16")),
    Question("narrower", (Tensor((16, 16), "double"), Tensor((16, 16), "double"))),
    Question("narrower", (Tensor((16, 16), "double"), Tensor((16, 16), "double")), ("bf16",)),
    Question("narrower", (Tensor((16, 16), "double"),)),
    Question("narrower", (Tensor((16, 16), "c10::complex<double>"),)),
    Question("convolution", FILTERS, ("1x1", "1x1", "1x1", "1", "channels_last")),
    Question("convolution", FILTERS, ("2x2", "0x0", "1x1", "1", "bf16"), backward=True),
    Question("convolution", FILTERS, ("1x1", "1x1", "1x1", "1", "benchmark")),
    Question(
        "convolution",
        (Tensor((2, 4, 16), "double"), Tensor((4, 4, 3), "double")),
        ("2", "1", "1", "1", "fp32"),
        backward=True,
    ),
    Question("convolution", (Tensor((2, 4, 16)), Tensor((4, 1, 3))), ("1", "2", "2", "4", "bf16")),
    Question("pointwise", SEQUENCES, BY_WIDTH, backward=True),
    Question("pointwise", (Tensor((2, 5, 6), "float32", (6, 12, 1)), SEQUENCES[1]), BY_WIDTH),
    Question("channels_last", IMAGES, (TURNED, "same"), backward=True),
    Question("channels_last", IMAGES, (TURNED, "benchmark", "same")),
    Question("loop", ROWS, (msgspec.json.encode(ROUND).decode(), "3", "0,1"), backward=True),
    Question("loop", ROWS, (msgspec.json.encode(ROUND).decode(), "3", "0,1")),
    Question("loop", NORMED, (msgspec.json.encode(LINEAR).decode(), "3", "0", JOINED)),
    Question("loop", ROWS, (msgspec.json.encode(ROUND).decode(), "3", "0,1", JOINED), backward=True),
    Question("loop", MASKED, (msgspec.json.encode(CHOSEN).decode(), "3", "0,1"), backward=True),
    Question(
        "loop",
        (ROWS[0], Tensor((16,), "float32")),
        (msgspec.json.encode(GATED).decode(), "3", "0"),
        backward=True,
    ),
    Question(
        "lists",
        (*[Tensor((size, 4), "float32") for size in (2, 3) * 2], Tensor((), "float32")),
        (msgspec.json.encode(UPDATE).decode(), "2", "0,1"),
    ),
    Question("lists", SQUARES[:1] * 4, (msgspec.json.encode(COPIED).decode(), "2", "0,1")),
    Question("lists", SQUARES[:1] * 4, (msgspec.json.encode(STORED).decode(), "2", "0,1", DATA)),
    Question(
        "lists", (*SQUARES[:1] * 3, Tensor((), "float32")), (msgspec.json.encode(NORM).decode(), "3", "0")
    ),
    *(
        Question("recurrent", (Tensor((4, 6)), Tensor((gates * 8, 8))), (layer, "5"), backward=True)
        for layer, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ),
    *(Question("embedding", (Tensor((50, 8)),), (name, "2", "5"), backward=True) for name in ("SGD", "Adam")),
    Question("topk", (Tensor((6, 40)),), ("1", "3")),
    Question("topk", (Tensor((40, 6), "c10::BFloat16", (1, 40)),), ("0", "5", "largest")),
    Question("windows", (Tensor((9, 6)),), ("torch", "0", "int64", "tensor")),
    Question("windows", (Tensor((9, 3, 6)),), ("torch", "1", "float32", "host")),
    Question("windows", (Tensor((9, 6)),), ("numpy", "0", "int64", "tensor", "cast")),
    Question("windows", (Tensor((9, 6)),), ("numpy", "0", "int64", "cast", "from=uint16")),
    Question("windows", (Tensor((9, 6, 3)),), ("numpy", "0", "float64")),
    Question("cat", SQUARES[:1], ("5", "0")),
    Question("cat", SQUARES[:1], ("5", "1"), backward=True),
)
#: Loops of operators that only a CPU has.
OF_A_CPU = (
    Question("loop", TURNS, (msgspec.json.encode(ATTENDED).decode(), "3", "0,1"), backward=True),
    Question("loop", LAYER, (msgspec.json.encode(STEPPED).decode(), "3", "0,5,6"), backward=True),
    Question("loop", TURNS, (msgspec.json.encode(HIDDEN).decode(), "3", "0,1")),
)
REFUSED = (Question("gelu", (Tensor((4,), "no such type"),)), Question("no such kind", SMALL))
QUESTIONS = (*ANYWHERE, *OF_A_CPU, *REFUSED)


@pytest.fixture(scope="module")
def tried() -> Probed:
    pytest.importorskip("torch")
    return probing.probe(Request(python=sys.executable), QUESTIONS, 60.0, device="cpu", threads=1)


def test_every_kind_is_tried_and_gives_the_same(tried: Probed) -> None:
    assert {one.kind for one in QUESTIONS} >= KINDS - {COMPILED}
    assert [one.question for one in tried.answers] == list(QUESTIONS)
    for one in tried.answers[:-2]:
        assert not one.error, one
        assert one.before is not None
        assert one.after is not None
        assert min(one.before.device_ns, one.after.device_ns, one.after.host_ns) > 0
        assert one.difference <= 1


@pytest.mark.parametrize(("work_s", "rounds"), [(0.02, 8), (0.1, 4), (0.4, 1)])
def test_on_a_cpu_there_are_rounds_enough_to_tell_two_apart_while_there_is_time(
    work_s: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import clock

    now = [0.0]
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(clock.time, name, lambda: now[0])
    for name in ("perf_counter_ns", "process_time_ns"):
        monkeypatch.setattr(clock.time, name, lambda: int(now[0] * 1e9))

    def takes(seconds: float) -> clock.Work:
        def work() -> None:
            now[0] += seconds

        return work

    before, after, ratios = clock.of_both(takes(work_s), takes(work_s / 2), "cpu", 60.0)
    assert ratios == pytest.approx([0.5] * rounds, rel=1e-3)
    assert after.device_ns == pytest.approx(before.device_ns / 2, rel=1e-3)


def test_a_round_that_is_held_up_is_not_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is lost in the first reading: after the three calls of the warm-up. Garbage is not collected
    meanwhile."""
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import clock

    now, count = [0.0], [0]
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(clock.time, name, lambda: now[0])
    for name in ("perf_counter_ns", "process_time_ns"):
        monkeypatch.setattr(clock.time, name, lambda: int(now[0] * 1e9))

    def work() -> None:
        count[0] += 1
        now[0] += 1.02 if count[0] == 7 else 0.02
        assert not gc.isenabled()

    assert gc.isenabled()
    before, after, ratios = clock.of_both(work, work, "cpu", 60.0)
    assert gc.isenabled()
    assert len(ratios) == 2
    assert before.device_ns == pytest.approx(2e7, rel=1e-3)
    assert after.device_ns == pytest.approx(2e7, rel=1e-3)


def test_recorded_operators_are_tried_compiled_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    broken = Question(
        "compiled",
        SMALL,
        ('{"operators": [["os.system.default", ["%0"], [1]]], "inputs": [0], "leaves": [], "results": [1]}',),
    )
    asked = (broken, COMPILES, Question("gelu", SMALL))
    found = probing.probe(Request(python=sys.executable), asked, 60.0, device="cpu", threads=1)
    assert [one.question for one in found.answers] == [asked[2], broken, COMPILES]  # what compiles comes last
    gelu, refused, compiled = found.answers
    assert gelu.compiling_s == 0.0
    assert gelu.after is not None
    assert "os.system.default" in refused.error
    assert not compiled.error
    assert compiled.before is not None
    assert compiled.after is not None
    assert compiled.compiling_s > 1e-9 * compiled.after.host_ns
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = probing.probe(Request(python=sys.executable), (COMPILES,), 60.0, device="cpu", threads=1)
    (one,) = found.answers
    assert one.error.startswith(NOT_COMPILING)
    assert "no-such-compiler" in one.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ValueError("raised:\nfailed with it:\n  x.cpp:3: fatal error: Python.h: none"),
            "x.cpp:3: fatal error: Python.h: none",
        ),
        (RuntimeError("backend raised:\nNoCompiler: none in PATH\nmore"), "NoCompiler: none in PATH"),
        (RuntimeError(""), "RuntimeError:"),
    ],
)
def test_the_reason_is_what_the_compiler_said(error: Exception, said: str) -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import compiled

    assert compiled.reason(error) == said


@pytest.mark.parametrize(
    "operator",
    [
        ["aten.relu_.default", ["%0"], [1]],  # writes to a leaf
        ["aten.mul.Tensor", ["%0", None], [1]],  # by a complex number, which is not recorded
        ["aten.block_diag.default", [["%0", "%0"]], [1]],  # torch's function takes its tensors one by one
    ],
)
def test_operators_that_cannot_be_run_again_as_recorded_are_run_nearly_so(operator: list[object]) -> None:
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing import compiled

    part = {"operators": [operator], "inputs": [0], "leaves": [0], "results": [1]}
    question = Question("compiled", (Tensor((4, 8), "float32"),), (json.dumps(part),), backward=True)
    for _ in range(2):
        (gradient,) = compiled.compiled(question, "cpu").before()
        assert gradient.shape == torch.Size((4, 8))


def test_a_counter_changed_in_place_does_not_cost_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing import compiled

    make = torch.compile
    monkeypatch.setattr(torch, "compile", lambda work, mode: make(work, backend="aot_eager"))
    operators = [
        ["aten.index_copy_.default", ["%0", 0, "%1", "%2"], [5]],
        ["aten.add_.Tensor", ["%3", 1], [6]],
        ["aten.mul.Tensor", ["%4", "%4"], [7]],
        ["aten.relu_.default", ["%7"], [8]],
    ]
    part = {"operators": operators, "inputs": [0, 1, 2, 3, 4], "leaves": [2, 4], "results": [6, 8]}
    given = tuple(
        Tensor(shape, dtype)
        for shape, dtype in (
            ((8, 3), "float32"),
            ((4,), "int64"),
            ((4, 3), "float32"),
            ((), "int64"),
            ((4, 8), "float32"),
        )
    )
    pair = compiled.compiled(Question("compiled", given, (json.dumps(part),), backward=True), "cpu")
    assert torch.equal(pair.before()[1], pair.after()[1])


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_what_a_graph_is_given_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, mode: str | None) -> None:
    """A module's parameters and counters are not copied, nor is a mask that is drawn anew. A copy of what
    autograd lets nobody write to is made by the code that is compiled."""
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing import compiled

    calls: list[tuple[int, ...]] = []

    def made(work: Callable[..., object], mode: str | None) -> Callable[..., object]:
        def noted(*given: object) -> object:
            calls.append(tuple(map(id, given)))
            assert all(getattr(one, "_dynamo_static_input_type", None) for one in given) == (mode is not None)
            return work(*given)

        return noted

    monkeypatch.setattr(torch, "compile", made)
    operators = [
        ["aten.bernoulli_.float", ["%0", 0.9], [4]],  # a mask
        ["aten.relu_.default", ["%1"], [5]],  # with a gradient
        ["aten.mul.Tensor", ["%5", "%4"], [6]],
        ["aten.add_.Tensor", ["%2", "%6"], [7]],  # gets one
        ["aten.mul.Tensor", ["%7", "%3"], [8]],
    ]
    part = {"operators": operators, "inputs": [0, 1, 2, 3], "leaves": [1, 3], "results": [8]}
    words = (json.dumps(part), *([mode] if mode else []))
    pair = compiled.compiled(Question("compiled", (Tensor((4, 8), "float32"),) * 4, words, True), "cpu")
    for _ in range(3):
        assert [one.shape for one in pair.after()] == [one.shape for one in pair.before()]
    assert len(set(calls)) == 1


def test_static_inputs_are_not_copied_into_the_graph() -> None:
    """AOTAutograd takes them for what stays, as it does a module's parameters."""
    torch = pytest.importorskip("torch")
    from torch._dynamo.backends.common import aot_autograd
    from torch._guards import TracingContext

    from warpline.capture.runner.probing import compiled

    static: list[list[int]] = []

    def forward(graph: Callable[..., object], _: object) -> Callable[..., object]:
        context = TracingContext.try_get()
        assert context is not None and context.fw_metadata is not None
        static.append(list(context.fw_metadata.static_input_indices))
        return graph

    inputs = [torch.ones(4, requires_grad=True), torch.ones(4)]
    compiled.stay(inputs)
    compiler = aot_autograd(fw_compiler=forward, bw_compiler=lambda graph, _: graph)
    torch.compile(lambda x, y: x * y, backend=compiler)(*inputs)
    assert static == [[0, 1]]


@pytest.mark.parametrize("kind", ["flash", "cudnn"])
def test_fused_attention_of_a_gpu_is_compiled(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """torch's own function of that name makes tensors of the lengths it returns, which Dynamo refuses. A meta
    tensor takes the operator wherever this runs."""
    import torch

    from warpline.capture.runner.probing import compiled

    make = torch.compile
    monkeypatch.setattr(torch, "compile", lambda work, mode: make(work, backend="aot_eager", fullgraph=True))
    pair = compiled.compiled(attending(kind), "meta")
    assert [one.shape for one in pair.after()] == [one.shape for one in pair.before()]


@pytest.mark.parametrize("same", [True, False])
def test_what_compiles_waits_for_the_device_only_to_be_timed(same: bool) -> None:
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing import answers
    from warpline.capture.runner.probing.pair import Pair

    done: list[str] = []

    def after() -> object:
        done.append("after")
        return torch.ones(2)

    pair = Pair(lambda: torch.ones(2), after, same)
    ends = time.monotonic() + 5
    found = answers.timed(COMPILES, pair, "cpu", ends, lambda most_s: done.append(f"wait {most_s:.0f}"))
    assert not found.error
    assert set(done[: done.index("wait 5")]) == {"after"}
    assert "after" in done[done.index("wait 5") :]
    done.clear()
    answers.timed(Question("gelu", SMALL), pair, "cpu", ends, lambda _: done.append("wait"))
    assert "wait" not in done  # it has its turn


def test_compiled_code_is_settled_before_it_is_timed_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import answers
    from warpline.capture.runner.probing.pair import Pair

    calls: list[str] = []
    pair = Pair(lambda: calls.append("before"), lambda: calls.append("after"), same=False)

    def of_both(*_: object) -> tuple[Cost, Cost, tuple[float, ...]]:
        calls.append("timed")
        return Cost(2.0, 2.0), Cost(1.0, 1.0), (0.5,)

    monkeypatch.setattr(answers.clock, "of_both", of_both)
    for device, settling in (("cuda", answers.SETTLING), ("cpu", 0)):
        calls.clear()
        answers.timed(COMPILES, pair, device, time.monotonic() + 9, lambda _: None)
        assert calls == ["after"] * (1 + settling) + ["timed"]


def test_an_error_without_words_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import answers
    from warpline.wire.probing import QuestionBatch

    def asserting(*_: object) -> None:
        raise AssertionError

    question = Question("gelu", SMALL)
    monkeypatch.setitem(answers.KINDS, "gelu", asserting)
    batch = QuestionBatch("cpu", 1, 1.0, 0.0, (question,))
    assert answers.answer(question, batch, 0.0, lambda _: None).error == "AssertionError: in asserting"


def test_trials_begin_when_no_other_profile_has_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing import answers

    free, told = iter([False, False, True]), io.StringIO()
    answers.turn(lambda: next(free), told)
    assert told.getvalue() == "{}\n" * 3
    monkeypatch.setattr(answers, "MOST_S", 0.0)
    answers.turn(lambda: False, told)
    assert told.getvalue() == "{}\n" * 4  # it goes on beside the other


def test_the_time_for_answers_begins_when_the_device_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = tmp_path / "python"
    waiting.write_text("#!/bin/sh\nfor i in 1 2 3; do echo '{}'; sleep 1; done; echo \"$ANSWER\"\n")
    waiting.chmod(0o755)
    monkeypatch.setattr(probing, "LATE_S", 1.5)
    answer = Answer(QUESTIONS[0])
    request = Request(python=str(waiting), environment={"ANSWER": json.dumps(asdict(answer))})
    found = probing.probe(request, QUESTIONS[:1], 0.5, device="cpu", threads=1)
    assert found.answers == (answer,)


def test_what_cannot_be_tried_has_a_reason_and_no_figures(tried: Probed) -> None:
    for one in tried.answers[-2:]:
        assert one.error
        assert one.before is None


@pytest.mark.parametrize(("load", "times"), [(0.1, 1.0), (3.0, 1.5), (40.0, 2.0)])
def test_what_compiles_has_longer_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, load: float, times: float
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert probing._busy() == times


def test_an_interpreter_that_does_not_answer_costs_a_note(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    found = probing.probe(Request(python=str(silent)), QUESTIONS[:2], 5.0, device="cpu", threads=1)
    assert (found.answers, found.left) == ((), 2)
    assert "could not be tried" in found.note


def test_a_trial_keeps_the_memory_that_it_frees(tmp_path: Path) -> None:
    """Also where the user's variables say otherwise: what new pages cost differs from process to process."""
    asked = tmp_path / "python"
    asked.write_text(f"#!/bin/sh\necho $MALLOC_TRIM_THRESHOLD_ $MALLOC_MMAP_MAX_ > {tmp_path}/kept\n")
    asked.chmod(0o755)
    request = Request(python=str(asked), environment={"MALLOC_TRIM_THRESHOLD_": "0"})
    probing.probe(request, QUESTIONS[:1], 5.0, device="cpu", threads=1)
    assert [int(word) for word in (tmp_path / "kept").read_text().split()] == [1 << 40, 0]


def test_trials_end_when_their_caller_needs_the_time(tmp_path: Path) -> None:
    """What has arrived by then counts."""
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\necho '{}'; echo \"$ANSWER\"; sleep 600\n")
    slow.chmod(0o755)
    answer = Answer(QUESTIONS[0])
    request = Request(python=str(slow), environment={"ANSWER": json.dumps(asdict(answer))})
    until = time.monotonic() + 2.0
    found = probing.probe(request, QUESTIONS[:2], 300.0, device="cpu", threads=1, until=until)
    assert time.monotonic() < until + 30
    assert (found.answers, found.left) == ((answer,), 1)


def test_an_interpreter_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nsleep 600\n")
    silent.chmod(0o755)
    monkeypatch.setattr(probing, "START_S", 0.5)
    began = time.monotonic()
    assert probing.probe(Request(python=str(silent)), QUESTIONS[:1], 5.0, device="cpu", threads=1).left == 1
    assert time.monotonic() - began < 30


def test_what_is_called_again_at_once_finds_its_caches_filled() -> None:
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing import clock

    numbers = torch.ones(64)
    work = numbers.exp
    assert clock._others(work, 20, 0) == clock.OTHERS  # not known
    assert clock._others(work, 20, 1) == 0
    assert clock._others(work, 20, 10**12) == clock.OTHERS
    few, many = (clock._others(work, 20, period_ns) for period_ns in (1_000_000, 5_000_000))
    assert 0 < few < many
