"""Autocast is offered where everything under it runs, and not where an operator would raise.

Each script's step is recorded as the runner does it. On a CPU autocast treats other operators than on a GPU;
where both treat them alike, the edited script has to run, or to raise, here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import libcst as cst
import pytest
import torch

from tests.annotated import FILE, read_example
from warpline.model.profile import LineCost, Op, Profile
from warpline.rulekit import Context
from warpline.rulekit.graph.lowered import IN_FLOAT32, PRODUCTS
from warpline.rules import rule_named
from warpline.syntax.source import Source
from warpline.text.edits import apply
from warpline.wire.dataflow import Dataflow

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function

torch.manual_seed(0)
x, y, w = torch.randn(6, 8), torch.randn(6, 8), torch.randn(8, 8, requires_grad=True)
rows = torch.tensor([0, 1, 0, 2, 1, 2])
"""
STEP = """
def step():
    {first}
    loss = {loss}
    loss.backward()
    {after}

step()
"""
#: Only on a GPU would it raise: on a CPU autocast runs these in float32.
GPU, BOTH = "on a GPU", "everywhere"


@dataclass(frozen=True)
class Case:
    """``told``: of the reason for which nothing is offered; "": something is offered."""

    name: str
    loss: str
    told: str = ""
    where: str = BOTH
    before: str = ""
    first: str = "pass"
    after: str = "pass"

    @property
    def text(self) -> str:
        return HEAD + self.before + STEP.format(first=self.first, loss=self.loss, after=self.after)


OWN = """
class Times(Function):
    {fwd}@staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return {forward}

    {bwd}@staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return {backward}
"""
TIMES = {"forward": "x @ w", "backward": "grad @ w.t(), x.t() @ grad"}
SCALED = {"forward": "x * w", "backward": "grad * w, grad * x"}
HELPERS = """
def spread(h):
    u, _ = torch.linalg.qr(h)
    return u.sum()

def gathered(h):
    out = {out}
    out.index_add_(0, rows, h)
    return out
"""
CASES = [
    Case("plain", "(x @ w).relu().square().mean()"),
    Case("attention", "F.scaled_dot_product_attention(x @ w, x, y).sum()"),
    Case("mixed-sum", "torch.where(y > 0, torch.cat([x @ w, y])[:6] + y, y).sum()"),
    Case("loss", "F.cross_entropy(x @ w, rows)"),
    Case("sparse", "(adj @ (x @ w)).sum()", "sparse matrix", BOTH,
         "adj = torch.eye(6).to_sparse_csr()\n"),
    Case("sparse-given", "torch.sparse.mm(adj, x @ w).sum()", "float32 and bfloat16", BOTH,
         "adj = torch.eye(6).to_sparse()\n"),
    Case("sparse-of-data", "(torch.sparse.mm(adj, x) @ w).sum()", "", BOTH,
         "adj = torch.eye(6).to_sparse()\n"),
    Case("factorized", "torch.linalg.slogdet(w @ w.t())[1]", "linalg_slogdet", GPU),
    Case("factorized-in-a-helper", "spread(x @ w)", "linalg_qr", GPU, HELPERS.format(out="None")),
    Case("factorized-parameter", "torch.linalg.slogdet(w)[1] + (x @ w).sum()"),
    Case("factorized-float32", "torch.linalg.slogdet((w @ w.t()).float())[1]"),
    Case("factorized-sum", "torch.linalg.slogdet(w @ w.t() + torch.eye(8))[1]"),
    Case("spectrum", "torch.fft.rfft(x @ w).abs().sum()", "fft_r2c", GPU),
    Case("spectrum-in-two-dimensions", "torch.fft.fft2(x @ w).abs().sum()", "fft_c2c", GPU),
    Case("spectrum-of-data", "(torch.fft.rfft(x).abs() @ w[:5]).sum()"),
    Case("complex", "torch.complex(x @ w, y @ w).abs().sum()", "complex"),
    Case("quantile", "torch.quantile(x @ w, 0.5)", "`quantile` does not take", GPU),
    Case("probabilities", "F.binary_cross_entropy((x @ w).sigmoid(), torch.ones(6, 8))", "logits", GPU),
    Case("logits", "F.binary_cross_entropy_with_logits(x @ w, torch.ones(6, 8))"),
    Case("summed-by-row", "gathered(x @ w).sum()", "float32 and bfloat16", BOTH,
         HELPERS.format(out="torch.zeros(3, 8)")),
    Case("summed-alike", "gathered(x @ w).sum()", "", BOTH, HELPERS.format(out="h.new_zeros(3, 8)")),
    Case("summed-data", "(gathered(x) @ w).sum()", "", BOTH, HELPERS.format(out="torch.zeros(3, 8)")),
    Case("set-by-index", "put(x @ w)", "float32 and bfloat16", BOTH,
         "def put(h):\n    out = torch.zeros(6, 8)\n    out[rows] = h\n    return out.sum()\n"),
    Case("set-by-slice", "put(x @ w)", "", BOTH,
         "def put(h):\n    out = torch.zeros(6, 8)\n    out[:, 2:] = h[:, 2:]\n    return out.sum()\n"),
    Case("interpolated", "torch.lerp(y, x @ w, 0.5).sum()", "float32 and bfloat16"),
    Case("products-in-place", "times(x @ w)", "float32 and bfloat16", BOTH,
         "def times(h):\n    seen = torch.zeros(6, 8).addmm_(h.detach(), w.detach())\n"
         "    return (h * seen).sum()\n"),
    Case("own-product", "Times.apply(x, w).sum()", "`Times` has a backward pass", BOTH,
         OWN.format(fwd="", bwd="", **TIMES)),
    Case("own-product-of-a-product", "Times.apply(x @ w, w).sum()", "custom_bwd", BOTH,
         OWN.format(fwd="", bwd="", **TIMES)),
    Case("own-product-that-knows-autocast", "Times.apply(x @ w, w).sum()", "", BOTH,
         OWN.format(fwd='@torch.amp.custom_fwd(device_type="cpu")\n    ',
                    bwd='@torch.amp.custom_bwd(device_type="cpu")\n    ', **TIMES)),
    Case("own-elementwise", "Times.apply(x @ w, y @ w).sum()", "", BOTH,
         OWN.format(fwd="", bwd="", **SCALED)),
    Case("own-type", "(torch.ops.warpline_test.twice(x @ w)).sum()", "unknown whether `twice`", GPU,
         "if not hasattr(torch.ops.warpline_test, 'twice'):\n"
         "  torch.library.define('warpline_test::twice', '(Tensor x) -> Tensor')\n"
         "  torch.library.impl('warpline_test::twice', 'CompositeExplicitAutograd', lambda x: x * 2)\n"),
    Case("seen-by-numpy", "h.square().mean()", "`h.detach().numpy()` does not take", BOTH, "",
         "h = x @ w", "h.detach().numpy()"),
    Case("seen-by-numpy-seldom", "h.square().mean()", "`h.detach().numpy()` does not take", GPU, "",
         "h = x @ w", "if rows is None: h.detach().numpy()"),
    Case("seen-in-float32", "h.square().mean()", "", BOTH, "", "h = x @ w", "h.detach().float().numpy()"),
    Case("loss-seen-by-numpy", "F.mse_loss(x @ w, y)", "", BOTH, "", "pass", "loss.detach().numpy()"),
    Case("classes-seen-by-numpy", "h.square().mean()", "", BOTH, "", "h = x @ w", "h.argmax(1).numpy()"),
]  # fmt: skip


def profiled(text: str) -> Profile:
    """A run of a script that has one line for each line of its text, with the record of its step."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    sites: Any = SimpleNamespace(user_files=UserFiles(["/example"], []), names=QualifiedNames())
    recording = Recording(sites)
    whole, _, _ = text.rpartition("\nstep()\n")
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(whole, FILE, "exec"), scope)
    recording.start()
    try:
        scope["step"]()
    finally:
        flow = recording.stop()
    assert flow.missing == ""
    return with_lines(text, flow)


def with_lines(text: str, flow: Dataflow) -> Profile:
    source = Source(FILE, text)
    names = {one.name.value: _qualified(source, one) for one in source.nodes(cst.FunctionDef)}
    names |= {one.name.value: f"{one.name.value}.forward" for one in source.nodes(cst.ClassDef)}
    for made in source.nodes(cst.Assign):
        value = made.value
        maker = source.code(value.func) if isinstance(value, cst.Call) else ""
        if names.get(maker) == f"{maker}.forward":
            names[source.code(made.targets[0].target)] = f"{maker}.forward"
    lines = []
    for line in range(1, len(source.lines) + 1):
        around = next(iter(source.at(line, cst.FunctionDef)), None)
        called = {
            (FILE, name)
            for call in source.calls(line)
            for each, name in names.items()
            if each in source.code(call.func).split(".")
        }
        quantile = Op("aten::quantile", "forward", 1, 0.0, 0.1, ((6, 8),), ("float",))
        product = Op("aten::mm", "forward", 1, 20.0, 1.0, ((6, 8), (8, 8)), ("float", "float"))
        has = " @ " in source.lines[line - 1] and around is not None
        lines.append(
            LineCost(
                FILE,
                line,
                _qualified(source, around) if around is not None else "<module>",
                *((20.0, 20.0) if has else (0.1, 0.1)),
                called=tuple(called),
                ops=(
                    *([product] if has else []),
                    *([quantile] if "quantile" in source.lines[line - 1] else []),
                ),
            )
        )
    profile = read_example(text).profile
    facts = replace(profile.facts, dataflow=flow, flags=replace(profile.facts.flags, allow_tf32=False))
    return replace(profile, facts=facts, lines=tuple(lines), steps=replace(profile.steps, step_ms=60.0))


def _qualified(source: Source, function: cst.FunctionDef) -> str:
    owner = source.enclosing(function, cst.ClassDef)
    return f"{owner.name.value}.{function.name.value}" if owner is not None else function.name.value


def offered(text: str) -> tuple[str, list[str]]:
    """The message, and the text after each fix."""
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(profiled(text), lambda path: text if path == FILE else None))
    return draft.message, [apply(text, fix.edits) for fix in draft.fixes]


def raises(text: str) -> bool:
    try:
        exec(
            compile(text.replace('autocast("cuda"', 'autocast("cpu"'), FILE, "exec"), {"__name__": "__main__"}
        )
    except (RuntimeError, TypeError):
        return True
    return False


FIELD = (
    HEAD
    + """
class Net(nn.Module):
    def forward(self, x):
        return (x @ w).relu()

net = Net()

def shade(net, x):
    {call}
    {last}

def step():
    {first}
    loss = {loss}
    loss.backward()

step()
"""
)


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"last": "return (h * h).sum(-1)"}, "h = net(x)"),
        ({"last": "return F.cross_entropy(h, rows)", "loss": "shade(net, x)"}, "h = net(x)"),
        # What it returns has 16 bits: the loss belongs under autocast as well.
        ({"last": "return h"}, "loss = shade(net, x).mean()"),
        ({"last": "return (h * h).sum(-1), h", "loss": "(lambda a, b: a.mean() + b.mean())(*shade(net, x))"},
         "loss = (lambda"),
        # In a branch, or one of two calls of the model.
        ({"last": "return (h * h).sum(-1)", "call": "if len(x):\n        h = net(x)"},
         "loss = shade(net, x).mean()"),
        ({"last": "return (h * h).sum(-1)", "loss": "(shade(net, x) + net(y).sum(-1)).mean()"},
         "loss = (shade(net, x)"),
        ({"last": "return 0", "first": "h_ = net(x)", "loss": "h_.square().mean()"}, "h_ = net(x)"),
    ],
)  # fmt: skip
def test_autocast_begins_where_a_function_calls_the_model(given: dict[str, str], at: str) -> None:
    usual = {"call": "h = net(x)", "first": "pass", "loss": "shade(net, x).mean()"}
    text = FIELD.format(**usual | given)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(profiled(text), lambda path: text if path == FILE else None))
    lines = text.splitlines()
    assert lines[draft.line - 1].strip().startswith(at)
    fixed = apply(text, draft.fixes[0].edits)
    assert not raises(fixed)
    below = fixed.splitlines()[[at in line for line in fixed.splitlines()].index(True) - 1]
    assert below.strip().startswith("with torch.autocast(")
    if at.startswith("h =") and "first" not in given:
        assert f"        {given['last']}" in fixed  # to the end of the function


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_autocast_is_offered_where_all_of_it_runs(case: Case) -> None:
    message, texts = offered(case.text)
    autocast = [text for text in texts if "autocast(" in text]
    assert bool(autocast) != bool(case.told), message
    if autocast:
        assert not raises(autocast[0])
    else:
        assert texts == [] or all("set_float32_matmul_precision" in text for text in texts)


@pytest.mark.parametrize("case", [one for one in CASES if one.told], ids=lambda case: case.name)
def test_what_is_not_offered_would_raise(case: Case) -> None:
    rule = rule_named("fp32-matmul")
    assert rule is not None
    profile = profiled(case.text)
    flags = replace(profile.facts.flags, allow_tf32=True)  # then there is no other fix
    profile = replace(profile, facts=replace(profile.facts, flags=flags))
    (draft,) = rule.find(Context(profile, lambda path: case.text if path == FILE else None))
    assert f"No edit is offered: {case.told}" in draft.message or case.told in draft.message
    if case.where == BOTH:
        step = case.text.index("\ndef step()")
        lines = case.text[step:].splitlines()
        forced = [
            f"    with torch.autocast('cpu', dtype=torch.bfloat16):\n    {line}"
            if line.startswith(("    loss =", "    h ="))
            else line
            for line in lines
        ]
        assert raises(case.text[:step] + "\n".join(forced) + "\n")


def test_the_lists_are_those_of_torchs_dispatcher() -> None:
    names = {
        name.partition("::")[2].partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCUDA") and name.startswith("aten::")
    }
    composite = {
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "_cudnn_rnn",
        "mkldnn_rnn_layer",
        "cross_entropy_loss",
    }
    recorded = {"_prelu_kernel", "nll_loss_forward", "nll_loss2d_forward", "native_group_norm"}
    listed = {name.removeprefix("_") for name in (PRODUCTS | IN_FLOAT32) - composite - recorded}
    missing = {name for name in listed if not {name, f"_{name}", name.removesuffix("_forward")} & names}
    assert missing <= {"fused_rms_norm", "rms_norm", "linalg_vecdot", "upsample_bicubic2d"}, missing
