"""Formulas are known by what they compute: spellings that no rule has seen, and what only looks like them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import calls, recorded
from warpline.rulekit.graph.known import known

torch = pytest.importorskip("torch")
F = torch.nn.functional

X = torch.randn(3, 5, 16)
Y = torch.randn(3, 5, 16)
POSITIVE = torch.rand(3, 5, 16) * 0.9 + 0.05
Q, K, V = (torch.randn(2, 7, 4, 8) for _ in range(3))  # batch, position, head, size
LOGITS, CLASSES = torch.randn(12, 9), torch.randint(9, (12,))
GAIN, SHIFT = torch.nn.Parameter(torch.rand(16)), torch.nn.Parameter(torch.rand(16))
FUTURE = torch.ones(7, 7).triu(1).bool()


# -- attention ---------------------------------------------------------------------------------------


def einsum_with_additive_mask() -> Any:
    scores = torch.einsum("bqhd,bkhd->bhqk", Q * 8**-0.5, K)
    weights = (scores + FUTURE * -1e9).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, V)


def heads_in_the_batch() -> Any:
    q, k, v = (t.transpose(1, 2).reshape(8, 7, 8) for t in (Q, K, V))
    scores = torch.baddbmm(torch.zeros(8, 7, 7), q, k.mT, beta=0, alpha=0.35)
    scores.masked_fill_(FUTURE, float("-inf"))
    return torch.bmm(F.dropout(scores.softmax(2), 0.1), v)


def head_by_head() -> Any:
    outs = []
    for head in range(4):
        q, k, v = Q[:, :, head], K[:, :, head], V[:, :, head]
        scores = torch.where(FUTURE, torch.tensor(-1e30), q @ k.transpose(1, 2) / math.sqrt(8))
        outs.append(scores.softmax(dim=-1) @ v)
    return torch.stack(outs, 2)


def own_softmax() -> Any:
    scores = torch.einsum("bihd,bjhd->bhij", Q, K).mul(0.35)
    top = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.einsum("bhij,bjhd->bihd", top / top.sum(-1, keepdim=True), V)


def of_its_logarithm() -> Any:
    scores = torch.matmul(Q.transpose(1, 2), K.permute(0, 2, 3, 1)) * 0.35
    shares = (scores - scores.exp().sum(3, keepdim=True).log()).exp()
    return shares @ V.transpose(1, 2)


def masked_exponentials() -> Any:
    scores = Q.transpose(1, 2) @ K.permute(0, 2, 3, 1) * 0.35
    top = (scores - scores.amax(-1, keepdim=True)).exp() * ~FUTURE
    return top / top.sum(-1, keepdim=True) @ V.transpose(1, 2)


def divided_at_last() -> Any:
    scores = Q.transpose(1, 2) @ K.permute(0, 2, 3, 1) * 0.35
    top = (scores - scores.amax(-1, keepdim=True)).exp()
    return (top @ V.transpose(1, 2)) / top.sum(-1, keepdim=True)


def capped_and_biased() -> Any:
    scores = torch.einsum("bihd,bjhd->bhij", Q, K)
    scores = 50 * torch.tanh(scores / 50) + torch.arange(7.0)
    return torch.einsum("bhij,bjhd->bihd", scores.float().softmax(-1).type_as(V), V)


@pytest.mark.parametrize(
    "act",
    [
        einsum_with_additive_mask,
        heads_in_the_batch,
        head_by_head,
        own_softmax,
        masked_exponentials,
        divided_at_last,
        capped_and_biased,
        of_its_logarithm,
    ],
)
def test_attention(act: Callable[[], Any]) -> None:
    assert set(calls(act)) == {"F.scaled_dot_product_attention"}


def test_attention_whose_softmax_is_an_exponential_of_a_difference() -> None:
    def act() -> Any:
        q, k, v = (t.flatten(0, 1) for t in (Q, K, V))
        scores = torch.baddbmm(torch.zeros(1, 1, 1), q, k.mT, alpha=0.2)
        return torch.bmm((scores - torch.logsumexp(scores, -1, keepdim=True)).exp(), v)

    assert calls(act) == ["F.scaled_dot_product_attention"]


def test_attention_in_inference_mode_where_composite_operators_are_recorded_whole() -> None:
    @torch.inference_mode()
    def act() -> Any:
        q, k, v = (t.flatten(2) for t in (Q, K, V))
        weights = torch.softmax(torch.einsum("bic,bjc->bij", q, k) * 0.2, dim=2)
        return torch.einsum("bij,bjc->bic", weights, v)

    assert calls(act) == ["F.scaled_dot_product_attention"]


# -- activations -------------------------------------------------------------------------------------


def gelu_in_place(x: Any = X) -> Any:
    cdf = torch.erf(x * 0.70710678).add_(1.0).mul_(0.5)
    return cdf.mul(x)


def gelu_by_powers(x: Any = X) -> Any:
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    e = torch.exp(-2 * inner)
    return x / (1 + e)


def silu_as_quotient(x: Any = X) -> Any:
    return torch.div(x, torch.exp(-x).add(1))


def mish(x: Any = X) -> Any:
    e = torch.log(1 + torch.exp(x))
    return torch.tanh(e) * x


def leaky(x: Any = X) -> Any:
    return x.clamp(min=0) - 0.2 * (-x).clamp(min=0)


def elu(x: Any = X) -> Any:
    return torch.where(x < 0, x.exp() - 1, x)


def softplus_stable(x: Any = X) -> Any:
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def hard_swish(x: Any = X) -> Any:
    return x * F.relu6(x + 3) / 6


def softmax_of_powers(x: Any = X) -> Any:
    top = torch.exp(x / 0.7)
    return top / top.sum(-1, keepdim=True)


def logarithm_of_a_softmax(x: Any = X) -> Any:
    top = x - x.amax(-1, keepdim=True)
    return top - top.exp().sum(-1, keepdim=True).log()


def hard_gate(x: Any = X) -> Any:
    gate = F.hardsigmoid(x)
    return gate * x


def squeezed(x: Any = X) -> Any:
    return 2 / (1 + torch.exp(-2 * x)) - 1


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (gelu_in_place, "F.gelu"),
        (gelu_by_powers, 'F.gelu(..., approximate="tanh")'),
        (silu_as_quotient, "F.silu"),
        (mish, "F.mish"),
        (leaky, "F.leaky_relu"),
        (elu, "F.elu"),
        (softplus_stable, "F.softplus"),
        (hard_swish, "F.hardswish"),
        (squeezed, "torch.tanh"),
        (softmax_of_powers, "F.softmax"),
        (logarithm_of_a_softmax, "F.log_softmax"),
        (hard_gate, "F.hardswish"),
    ],
)
def test_activations(act: Callable[[], Any], call: str) -> None:
    assert calls(act) == [call]


def test_a_gate_of_swiglu_is_found_beside_its_product() -> None:
    def act() -> Any:
        gate, up = X.chunk(2, -1)
        opened = gate * gate.sigmoid()
        return opened * up

    assert calls(act) == ["F.silu"]


# -- what only looks like one ------------------------------------------------------------------------


def torchs_own() -> Any:
    y = F.layer_norm(F.gelu(F.silu(X)), (16,), GAIN, SHIFT)
    q, k, v = (t.transpose(1, 2) for t in (Q, K, V))
    return (
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.cross_entropy(LOGITS, CLASSES, label_smoothing=0.1),
        F.mse_loss(y, X) + F.smooth_l1_loss(y, X, beta=0.1),
        F.gaussian_nll_loss(X, Y, POSITIVE),
        torch.nn.MultiheadAttention(16, 2, batch_first=True)(X, X, X, need_weights=False),
    )


def mixture_of_experts() -> Any:
    gate = torch.nn.Linear(16, 6)
    weights = gate(X).softmax(-1)
    return weights @ torch.randn(3, 6, 16)


def slot_attention() -> Any:
    scores = torch.einsum("bihd,bjhd->bhij", Q[:, :5], K)
    return torch.einsum("bhij,bjhd->bihd", scores.softmax(-2), V)


def over_the_batch() -> Any:
    return (X - X.mean(0, keepdim=True)) / torch.sqrt(X.var(0, keepdim=True) + 1e-5)


def weight_decay() -> Any:
    return (GAIN**2).mean() + (GAIN.abs() * 0.1).sum()


def pairwise_distances() -> Any:
    gap = X[:, :, None] - X[:, None]
    return (gap**2).sum(-1).mean()


def gate_of_another() -> Any:
    return X * torch.sigmoid(1.1 * Y) * 0.5 * (1 + X)


def kl_to_a_normal() -> Any:
    return -0.5 * (1 + Y - X**2 - Y.exp()).sum(1).mean()


def negative_learning() -> Any:
    logs = LOGITS.log_softmax(-1)
    return logs.masked_fill(F.one_hot(CLASSES, 9).bool(), 0.0).sum(1).mean()


def guarded_entropy() -> Any:
    shares = LOGITS.softmax(-1)
    each = shares * shares.log()
    return -each.masked_fill(shares == 0, 0.0).sum(1).mean()


def linear_attention() -> Any:
    q, k, v = (F.elu(one[0, :, 0]) + 1 for one in (Q, K, V))
    return (q @ (k.T @ v)) / (q @ k.sum(0))[:, None]


def scaled_on_one_side() -> Any:
    return -F.logsigmoid(X[..., :8] - X[..., 8:] * POSITIVE[..., 8:]).mean()


def policy_entropy() -> Any:
    logs = LOGITS.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1).mean()


@pytest.mark.parametrize(
    "act",
    [
        torchs_own, mixture_of_experts, slot_attention, over_the_batch, weight_decay, pairwise_distances,
        gate_of_another, kl_to_a_normal, policy_entropy, negative_learning, guarded_entropy, linear_attention,
        scaled_on_one_side,
    ],
)  # fmt: skip
def test_what_only_looks_like_a_formula(act: Callable[[], Any]) -> None:
    assert calls(act) == []


def test_the_result_is_at_the_line_that_makes_it() -> None:
    graph = recorded(own_softmax)
    (match,) = known(graph)["attention"]
    site = graph.site(match.result)
    assert site is not None
    assert site.function == "own_softmax"
    assert site.line == own_softmax.__code__.co_firstlineno + 3
