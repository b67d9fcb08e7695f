"""What is asked for a change, and what the answers make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import profile
from warpline.model.change import Fuse, MatmulRate, PadProducts, Replace, Scale, Together
from warpline.model.profile import Kernel, LineCost, Op, Profile
from warpline.model.report import Inside, Phase
from warpline.probing import by_question, informed, questions, undecided
from warpline.wire.facts import Memory
from warpline.wire.probing import Answer, Cost, Probed, Question, Tensor
from warpline.wire.run import DeviceFacts, Facts, Site

FILE = "/train.py"
PLACE = (FILE, 10)
OTHERWISE = Scale((PLACE,), device=0.5)


def run(*ops: Op, kind: str = "cuda", sites: tuple[Site, ...] = ()) -> Profile:
    """A profile whose line 10 called ``ops``."""
    base = profile()
    cost = LineCost(FILE, 10, "f", device_ms=sum(op.device_ms for op in ops), ops=ops)
    manifest = replace(base.manifest, device=DeviceFacts(kind=kind))
    return replace(base, lines=(cost,), manifest=manifest, facts=Facts(sites=sites))


def op(name: str, *shapes: tuple[int, ...], ms: float = 1.0, phase: Phase = "forward") -> Op:
    return Op(f"aten::{name}", phase, 1.0, ms, ms, shapes, ("float",) * len(shapes))


def answered(question: Question, left: float, host: float = 1.0) -> Answer:
    return Answer(question, Cost(1000.0, 1000.0), Cost(1000.0 * host, 1000.0 * left))


def test_a_norm_is_asked_about_by_the_input_of_its_reductions() -> None:
    found = run(
        op("mean", (8, 16, 32)),
        op("var", (8, 16, 32)),
        op("add", (8, 16, 1)),
        op("mul", (32,), phase="backward"),
    )
    change = Replace("layer_norm", (PLACE,), OTHERWISE)
    assert questions(found, change) == [
        Question("layer_norm", (Tensor((8, 16, 32)),), ("var",), backward=True)
    ]


def test_a_norm_is_asked_about_by_what_was_cast_for_it() -> None:
    """Some of a norm's inputs may be in float32 already: those are not cast."""
    half = Op("aten::_to_copy", "forward", 1.0, 1.0, 1.0, ((4, 64, 16), ()), ("c10::BFloat16", "Scalar"),
              ((16, 32, 1), ()))  # fmt: skip
    found = run(op("mean", (4, 64, 16)), op("mean", (8, 128)), half)
    halved = Tensor((4, 64, 16), "c10::BFloat16", (16, 32, 1))
    for words in (("cast",), ("cast", "wide"), ("cast", "mixed")):
        assert questions(found, Replace("rms_norm", (PLACE,), OTHERWISE, words)) == [
            Question("rms_norm", (halved,), words),
            Question("rms_norm", (Tensor((8, 128)),)),
        ]
    alike = Replace("rms_norm", (PLACE,), OTHERWISE)
    assert questions(found, alike)[0] == Question("rms_norm", (Tensor((4, 64, 16)),))


def test_an_activation_is_asked_about_by_its_largest_input() -> None:
    found = run(op("mul", (64, 256)), op("tanh", (64, 256)), op("mul", ()))
    assert questions(found, Replace("gelu", (PLACE,), OTHERWISE)) == [Question("gelu", (Tensor((64, 256)),))]


def test_attention_is_asked_about_by_both_products() -> None:
    found = run(
        op("matmul", (2, 4, 64, 32), (2, 4, 32, 64)),
        op("softmax", (2, 4, 64, 64)),
        op("matmul", (2, 4, 64, 64), (2, 4, 64, 32)),
    )
    (one,) = questions(found, Replace("attention", (PLACE,), OTHERWISE, ("causal",)))
    assert [tensor.shape for tensor in one.tensors] == [(2, 4, 64, 32), (2, 4, 32, 64), (2, 4, 64, 32)]


def test_an_attention_s_second_product_as_large_as_another_s_scores_is_not_its_first() -> None:
    found = run(
        *(
            op("bmm", (4, 900, 9), (4, 9, 900)),
            op("softmax", (4, 900, 900)),
            op("bmm", (4, 900, 900), (4, 900, 9)),
        ),
        *(op("bmm", (9, 60, 3), (9, 3, 60)), op("softmax", (9, 60, 60)), op("bmm", (9, 60, 60), (9, 60, 3))),
    )
    asked = questions(found, Replace("attention", (PLACE,), OTHERWISE))
    assert {one.tensors[0].shape for one in asked} == {(4, 900, 9), (9, 60, 3)}


def test_attention_with_values_before_their_weights_is_asked_about_as_the_other_way_round() -> None:
    found = run(
        op("bmm", (6, 784, 24), (6, 24, 784)),
        op("softmax", (6, 784, 784)),
        op("bmm", (6, 24, 784), (6, 784, 784)),
    )
    (one,) = questions(found, Replace("attention", (PLACE,), OTHERWISE))
    assert [tensor.shape for tensor in one.tensors] == [(6, 784, 24), (6, 24, 784), (6, 784, 24)]


def test_attention_with_a_softmax_by_hand_is_asked_about_in_the_order_of_its_products() -> None:
    found = run(
        op("matmul", (2, 4, 64, 32), (2, 4, 32, 64)),
        op("exp", (2, 4, 64, 64)),
        op("matmul", (2, 4, 64, 64), (2, 4, 64, 32)),
    )
    (one,) = questions(found, Replace("attention", (PLACE,), OTHERWISE))
    assert [tensor.shape for tensor in one.tensors] == [(2, 4, 64, 32), (2, 4, 32, 64), (2, 4, 64, 32)]


def test_attention_by_einsum_is_asked_about_in_the_shape_of_its_softmax() -> None:
    found = run(
        op("einsum", ms=0.0),
        op("bmm", (2, 256, 16), (2, 16, 64)),  # four heads of 64 rows share a key
        op("softmax", (2, 4, 64, 64)),
        op("bmm", (2, 256, 64), (2, 64, 32)),
    )
    (one,) = questions(found, Replace("attention", (PLACE,), OTHERWISE, ("mask",)))
    assert [tensor.shape for tensor in one.tensors] == [(2, 4, 64, 16), (2, 4, 16, 64), (2, 4, 64, 32)]
    assert one.options == ("mask", "einsum")
    # Products of other sizes are no part of it.
    assert not questions(
        run(op("bmm", (2, 9, 16), (2, 16, 64)), op("softmax", (2, 4, 64, 64))),
        Replace("attention", (PLACE,), OTHERWISE),
    )


def test_an_optimizer_is_asked_about_by_the_shapes_of_its_site() -> None:
    site = Site("optimizer", FILE, 5, "", {"type": "AdamW", "shapes": [[2, 8, 8], [1, 8]]}, uses=(PLACE,))
    (one,) = questions(run(sites=(site,)), Replace("optimizer", (PLACE,), OTHERWISE, ("AdamW",)))
    assert sorted(tensor.shape for tensor in one.tensors) == [(8,), (8, 8), (8, 8)]
    # A run from before the shapes were recorded.
    old = replace(site, facts={"type": "AdamW"})
    assert not questions(run(sites=(old,)), Replace("optimizer", (PLACE,), OTHERWISE, ("AdamW",)))
    each = replace(site, facts={**site.facts, "shapes": [[1, 8]], "all_shapes": [[1, 8], [1, 9], [1, 8]]})
    (one,) = questions(run(sites=(each,)), Replace("optimizer", (PLACE,), OTHERWISE, ("Adam", "apart")))
    assert one == Question("optimizer", (Tensor((8,)), Tensor((8,)), Tensor((9,))), ("Adam", "apart"))


def test_the_answer_takes_the_place_of_what_is_simulated_otherwise() -> None:
    found = run(op("mul", (64, 256)))
    change = Replace("gelu", (PLACE,), OTHERWISE, shares=(0.5,))
    (question,) = questions(found, change)
    known = by_question(Probed((answered(question, 0.25, host=0.75),)))
    assert informed(found, change, known) == (Fuse((PLACE,), keep=0.25, keep_host=0.75, shares=(0.5,)), True)
    assert informed(found, change, {}) == (change, False)
    # Of two changes one of which cannot be tried the whole is simulated.
    assert informed(found, Together((change, OTHERWISE)), known)[1] is False


def test_a_replacement_that_failed_is_simulated() -> None:
    found = run(op("mul", (64, 256)))
    change = Replace("gelu", (PLACE,), OTHERWISE)
    (question,) = questions(found, change)
    wrong = by_question(Probed((Answer(question, difference=3.0, error="the results differ"),)))
    assert informed(found, change, wrong) == (change, False)


def test_products_keep_what_was_left_of_each() -> None:
    found = run(op("mm", (64, 64), (64, 64), ms=9.0), op("addmm", (32,), (64, 64), (64, 32), ms=1.0))
    change = MatmulRate("bf16", (PLACE,))
    long, short = questions(found, change)
    tried, all_of_it = informed(found, change, by_question(Probed((answered(long, 0.1),))))
    assert all_of_it
    assert isinstance(tried, MatmulRate)
    assert tried.tried == ((("aten::mm", ((64, 64), (64, 64)), ()), pytest.approx(0.1)),)
    # A tenth of the time says nothing about the rest.
    assert informed(found, change, by_question(Probed((answered(short, 0.1),)))) == (change, False)
    assert not questions(run(op("mm", (64, 64), (64, 64)), kind="cpu"), change)


def test_products_of_a_size_that_will_not_fit_are_tried_in_the_precision_that_they_will_have() -> None:
    found = run(op("mm", (64, 100), (100, 57), ms=9.0), op("mm", (64, 64), (64, 64), ms=9.0))
    padding = PadProducts(57, "bf16", 0.3, (PLACE,), assumed=True)
    change = Replace("padded", (PLACE,), padding, ("57", "64", "bf16"))
    (question,) = questions(found, change)
    assert question.options == ("57", "64", "bf16")
    assert [one.shape for one in question.tensors] == [(64, 100), (100, 57)]
    tried = by_question(Probed((answered(question, 0.2),)))
    assert informed(found, change, tried) == (replace(padding, left=pytest.approx(0.2), assumed=False), True)


def test_a_growing_tensor_is_asked_about_by_its_pieces() -> None:
    joins = [op("cat", (4, size, 8, 4, 1, 8)) for size in range(1, 6)] + [op("cat", (), ms=0.0)]
    assert questions(run(*joins), Replace("cat", (PLACE,), OTHERWISE)) == [
        Question("cat", (Tensor((4, 1, 8)),), ("6", "1"))
    ]
    joins = [replace(one, count=3.0) for one in joins]
    (question,) = questions(run(*joins), Replace("cat", (PLACE,), OTHERWISE))
    assert question.options == ("6", "1"), "in each of three loops"
    # Three tensors, or a torch that records no sizes.
    assert not questions(run(op("cat", (4, 8, 4))), Replace("cat", (PLACE,), OTHERWISE))
    assert not questions(run(op("cat", ())), Replace("cat", (PLACE,), OTHERWISE))


CONVOLVED = ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")


def convolved(*values: str) -> Profile:
    """A line that convolves, forward and backward, as cuDNN's operators show it."""
    image, weight, gradient = (8, 3, 32, 32), (16, 3, 3, 3), (8, 16, 16, 16)
    called = replace(op("convolution", image, weight, (16,), ms=0.0), values=values)
    forward = op("cudnn_convolution", image, weight, ms=2.0)
    backward = op("convolution_backward", gradient, image, weight, ms=3.0, phase="backward")
    return run(called, forward, backward)


def test_a_convolution_is_asked_about_with_its_arguments() -> None:
    change = Replace("convolution", (PLACE,), OTHERWISE, ("channels_last",))
    pair = (Tensor((8, 3, 32, 32)), Tensor((16, 3, 3, 3)))
    words = ("2x2", "1x1", "1x1", "1", "channels_last")
    assert questions(convolved(*CONVOLVED), change) == [Question("convolution", pair, words, backward=True)]
    # A run from before the arguments were recorded, and a transposed one.
    assert not questions(convolved(), change)
    assert not questions(convolved(*CONVOLVED[:6], "True", *CONVOLVED[7:]), change)


def test_convolutions_keep_what_is_left_in_16_bits() -> None:
    found, change = convolved(*CONVOLVED), MatmulRate("bf16", (PLACE,))
    (one,) = set(questions(found, change))
    tried, all_of_it = informed(found, change, by_question(Probed((answered(one, 0.5),))))
    assert all_of_it
    assert isinstance(tried, MatmulRate)
    assert {operator[0]: left for operator, left in tried.tried} == {
        "aten::cudnn_convolution": pytest.approx(0.5),
        "aten::convolution_backward": pytest.approx(0.5),
    }
    assert not questions(found, MatmulRate("tf32", (PLACE,)))


@pytest.mark.parametrize(("kind", "host"), [("cpu", 0.6), ("cuda", 1.0)])
def test_a_sparse_gradient_leaves_what_its_trial_says_of_each_share(kind: str, host: float) -> None:
    words = ("SGD", "2", "512", "90000", "64")
    change = Replace("embedding", (PLACE,), OTHERWISE, words, (0.5,))
    found = run(op("embedding", (90000, 64)), kind=kind)
    (asked,) = questions(found, change)
    assert asked == Question("embedding", (Tensor((90000, 64)),), ("SGD", "2", "512"), backward=True)
    left = Scale((PLACE,), pytest.approx(0.6), pytest.approx(host), apart=True)
    assert informed(found, change, {asked: answered(asked, 0.2)}) == (Together((left,)), True)
    large = replace(change, options=("SGD", "2", "512", "9000000", "64"))
    assert not questions(found, large), "several of that size may not fit"


@pytest.mark.parametrize(("kind", "host"), [("cpu", 0.6), ("cuda", 1.0)])
def test_a_sort_leaves_what_topk_takes_of_its_share(kind: str, host: float) -> None:
    change = Replace("topk", (PLACE,), OTHERWISE, ("1", "9", "largest"), (0.5,))
    found = run(op("sort", (64, 4096)), op("argsort", (64, 4096), ms=0.0), op("mul", (64, 4096)), kind=kind)
    (asked,) = questions(found, change)
    assert asked == Question("topk", (Tensor((64, 4096)),), ("1", "9", "largest"))
    left = Scale((PLACE,), pytest.approx(0.6), pytest.approx(host), apart=True)
    assert informed(found, change, {asked: answered(asked, 0.2)}) == (Together((left,)), True)
    whole = replace(op("sort", (64, 4096)), dtypes=("long int",))
    assert not questions(run(op("sort", (64, 4096)), whole, kind=kind), change), "one of the sorts is unknown"
    (fewer,) = questions(run(op("sort", (1024, 1 << 17)), kind=kind), change)
    assert fewer.tensors == (Tensor((512, 1 << 17)),), "rows are sorted each by itself"
    assert not questions(run(op("sort", (2, 1 << 27)), kind=kind), change)


def test_windows_are_tried_as_a_batch() -> None:
    change = Replace("windows", (PLACE,), OTHERWISE, ("numpy", "0", "int64", "tensor", "cast", "64,256"))
    found = run(op("stack", (64, 256)))
    (asked,) = questions(found, change)
    assert asked == Question("windows", (Tensor((64, 256)),), ("numpy", "0", "int64", "tensor", "cast"))
    assert informed(found, change, {asked: answered(asked, 0.2)}) == (
        Fuse((PLACE,), keep=pytest.approx(0.2), keep_host=pytest.approx(1.0)),
        True,
    )
    large = replace(change, options=("numpy", "0", "int64", "8,9000000"))
    assert not questions(found, large)


def test_complex_numbers_of_double_precision_are_asked_about() -> None:
    spectrum = Op("aten::_fft_c2r", "forward", 1.0, 9.0, 9.0, ((64, 129),), ("c10::complex<double>",))
    phase = Op("aten::sin", "forward", 1.0, 0.1, 0.1, ((129,),), ("double",))
    found, change = run(spectrum, phase), Replace("narrower", (PLACE,), OTHERWISE)
    long, short = questions(found, change)
    assert long.tensors == (Tensor((64, 129), "c10::complex<double>"),)
    # What is known of the small tensor says nothing of the large one.
    assert informed(found, change, {short: answered(short, 1.0)}) == (change, False)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_convolutions_of_double_precision_are_asked_about_on_a_cpu(kind: str) -> None:
    """There the operator that is called hands its work on, as images of a height of one."""
    pair = (64, 24, 128), (48, 24, 7)
    doubles = ("double",) * 2
    words = ("", "", "", "[2]", "[3]", "[1]", "False", "[0]", "1")
    found = run(
        Op("aten::convolution", "forward", 1.0, 0.1, 9.0, pair, doubles, values=words),
        Op("aten::_slow_conv2d_forward", "forward", 1.0, 8.0, 9.0, ((64, 24, 1, 128),), doubles[:1]),
        Op(
            "aten::convolution_backward",
            "backward",
            1.0,
            0.1,
            19.0,
            ((64, 48, 64), *pair),
            (*doubles, "double"),
        ),
        Op("aten::_slow_conv2d_backward", "backward", 1.0, 18.0, 19.0, ((64, 48, 1, 64),), doubles[:1]),
        Op("aten::relu", "forward", 1.0, 2.0, 2.0, ((64, 48, 64),), doubles[:1]),
        kind=kind,
    )
    if kind != "cpu":
        found = replace(
            found,
            lines=tuple(
                replace(cost, kernels=(Kernel("conv", "forward", 4.0, 9.0),)) for cost in found.lines
            ),
        )
    asked = questions(found, Replace("narrower", (PLACE,), OTHERWISE))
    of_images = [one for one in asked if one.kind == "convolution"]
    if kind != "cpu":
        assert of_images == []
        return
    tensors = tuple(Tensor(shape, "double") for shape in pair)
    assert of_images == [Question("convolution", tensors, ("2", "3", "1", "1", "fp32"), backward=True)]
    assert [one.tensors[0].shape for one in asked if one.kind == "narrower"] == [(64, 48, 64)]


def spelled(own_ms: float, calls: float, kind: str = "cuda", memory: Memory | None = None) -> Fuse:
    """What comes of a loss whose line runs ``calls`` times a step and takes ``own_ms`` in all. The usual
    spelling takes 1 ms a call, and the fused one 0.5 ms."""
    base = run(op("exp", (64, 256), ms=own_ms), kind=kind)
    cost = replace(base.lines[0], calls=calls)
    found = replace(base, lines=(cost,), facts=replace(base.facts, memory=memory or Memory()))
    change = Replace("cross_entropy", (PLACE,), OTHERWISE)
    (question,) = questions(found, change)
    answer = Answer(question, Cost(1e6, 1e6), Cost(0.8e6, 0.5e6))
    made, tried = informed(found, change, {question: answer})
    assert tried
    assert isinstance(made, Fuse)
    return made


def test_a_costlier_spelling_leaves_less_of_its_time() -> None:
    made = spelled(own_ms=4.0, calls=2.0)
    assert (made.keep, made.keep_host) == (pytest.approx(0.25), pytest.approx(0.4))


def test_a_cheaper_spelling_gains_less() -> None:
    made = spelled(own_ms=0.6, calls=1.0)
    assert (made.keep, made.keep_host) == (pytest.approx(0.5 / 0.6), pytest.approx(0.8))


@pytest.mark.parametrize(
    ("own_ms", "calls", "kind"), [(4.0, 0.0, "cuda"), (9.0, 1.0, "cuda"), (4.0, 2.0, "cpu")]
)
def test_where_the_lines_own_time_says_nothing_the_usual_spelling_stands_for_it(
    own_ms: float, calls: float, kind: str
) -> None:
    assert spelled(own_ms, calls, kind).keep == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("own_ms", "pages", "keep"),
    [
        (3.0, 4000.0, 0.5 * 2 / 3),  # the third millisecond goes to new pages, of which the step has enough
        (9.0, 1000.0, 0.5 * 2 / 3),  # one of seven does; the others are another process's
        (9.0, 0.0, 0.5),
        (1.5, 4000.0, 0.5),  # the trial was slower
    ],
)
def test_what_new_pages_cost_on_a_cpu_goes_with_what_is_replaced(
    own_ms: float, pages: float, keep: float
) -> None:
    """The trial, which has no new pages, takes 2 ms a step now and 1 ms then. A page takes 1 us."""
    memory = Memory(new_pages_per_step=pages, page_ns=1000.0)
    assert spelled(own_ms, calls=2.0, kind="cpu", memory=memory).keep == pytest.approx(keep)


@pytest.mark.parametrize(("kind", "keep"), [("cpu", 0.25), ("cuda", 0.5)])
def test_new_pages_of_an_optimizer_and_of_fused_attention(kind: str, keep: float) -> None:
    """They are tried as they are recorded: on a GPU their lines' time says nothing more."""
    memory = Memory(new_pages_per_step=4000.0, page_ns=1000.0)
    # Of nine million numbers a trial on the host has a third, and one on a GPU all.
    facts = {"type": "AdamW", "shapes": [[9, 1000, 1000]]}
    site = Site("optimizer", FILE, 5, "", facts, uses=(PLACE,))
    base = run(op("sqrt", (1000, 1000), ms=6.0), kind=kind, sites=(site,))
    ran = replace(base.lines[0], calls=1.0)
    found = replace(base, lines=(ran,), facts=replace(base.facts, memory=memory))
    stepped = Replace("optimizer", (PLACE,), OTHERWISE, ("AdamW",))
    (question,) = questions(found, stepped)
    assert len(question.tensors) == (3 if kind == "cpu" else 9)
    made, _ = informed(found, stepped, {question: Answer(question, Cost(1e6, 1e6), Cost(0.5e6, 0.5e6))})
    assert isinstance(made, Fuse)
    assert made.keep == pytest.approx(keep)

    heads = (2, 4, 64, 32)
    call = replace(op("scaled_dot_product_attention", heads, heads, heads, ms=6.0), count=3.0)
    base = run(call, kind=kind)
    # Three layers are called at one line.
    ran = replace(base.lines[0], calls=1.0)
    found = replace(base, lines=(ran,), facts=replace(base.facts, memory=memory))
    fused = Replace("fused_attention", (PLACE,), OTHERWISE, ("broadcast",))
    (question,) = questions(found, fused)
    made, _ = informed(found, fused, {question: Answer(question, Cost(1e6, 1e6), Cost(0.5e6, 0.5e6))})
    assert isinstance(made, Fuse)
    assert made.keep == pytest.approx(keep)


@pytest.mark.parametrize(("below", "keep"), [(True, 0.5), (False, 0.125)])
def test_attention_below_a_line_runs_as_often_as_its_operators(below: bool, keep: float) -> None:
    """A model of four layers is one call, in which each layer's attention takes 1 ms."""
    first = op("bmm", (96, 64, 32), (96, 32, 64), ms=2.0)
    second = op("bmm", (96, 64, 64), (96, 64, 32), ms=1.0)
    base = run(replace(first, count=4.0), op("_softmax", (96, 64, 64)), replace(second, count=4.0))
    inside = (Inside("blocks.*", "/lib/vit.py", 3, "forward", 4.0, 4.0, 4.0),) if below else ()
    found = replace(base, lines=(replace(base.lines[0], calls=1.0, inside=inside),))
    change = Replace("attention", (PLACE,), OTHERWISE)
    (question,) = questions(found, change)
    made, tried = informed(found, change, {question: Answer(question, Cost(1e6, 1e6), Cost(0.8e6, 0.5e6))})
    assert tried
    assert isinstance(made, Fuse)
    assert made.keep == pytest.approx(keep)


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ((), False),  # of an older version
        ((0.5,), True),
        ((0.7, 0.72, 0.69), False),
        ((1.1, 1.12, 1.09), True),
        ((0.4, 1.3, 0.9, 0.8, 1.2, 0.7), True),  # a busy machine: 0.86 in the mean, and up to 1.3
        ((0.99, 0.98, 0.985, 0.99, 0.98, 0.985, 0.99, 0.98), False),
    ],
)
def test_rounds_that_differ_too_much_say_nothing(rounds: tuple[float, ...], expected: bool) -> None:
    found = run(op("mean", (8, 16)))
    change = Replace("layer_norm", (PLACE,), OTHERWISE)
    (question,) = questions(found, change)
    answers = {question: replace(answered(question, 0.5), ratios=rounds)}
    assert undecided(found, change, answers) is expected


def test_the_parts_of_a_change_are_decided_together() -> None:
    """What is lost in one part, and how far the others may be off, counts against the gain of all."""
    found = run(op("mean", (8, 16)), op("mean", (8, 32)))
    change = Replace("layer_norm", (PLACE,), OTHERWISE)
    small, large = sorted(questions(found, change), key=lambda one: one.tensors[0].shape)
    steady, twice = (0.5, 0.51, 0.49), (2.0, 2.1, 1.9)
    for first, second, expected in ((steady, twice, True), (twice, steady, True), (steady, steady, False)):
        answers = {
            small: replace(answered(small, 0.5), ratios=first),
            large: replace(answered(large, 0.5), ratios=second),
        }
        assert undecided(found, change, answers) is expected


def test_an_attention_whose_scores_are_added_to_something() -> None:
    """As diffusers' processors do."""
    first = op("baddbmm", (96, 64, 9), (96, 64, 32), (96, 32, 9))
    second = op("bmm", (96, 64, 9), (96, 9, 32))
    found = run(first, op("_softmax", (96, 64, 9)), second)
    (question,) = questions(found, Replace("attention", (PLACE,), OTHERWISE))
    assert [one.shape for one in question.tensors] == [(96, 64, 32), (96, 32, 9), (96, 9, 32)]
