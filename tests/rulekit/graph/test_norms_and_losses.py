"""Norms and losses are known by what they compute: spellings that no rule has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import calls, recorded
from warpline.rulekit.graph.known import known
from warpline.rulekit.graph.matched import _place

torch = pytest.importorskip("torch")
F = torch.nn.functional

X = torch.randn(3, 5, 16)
Y = torch.randn(3, 5, 16)
POSITIVE = torch.rand(3, 5, 16) * 0.9 + 0.05
LOGITS, CLASSES = torch.randn(12, 9), torch.randint(9, (12,))
GAIN, SHIFT = torch.nn.Parameter(torch.rand(16)), torch.nn.Parameter(torch.rand(16))
MAPS = torch.randn(2, 8, 5, 5)


# -- norms -------------------------------------------------------------------------------------------


def layer_norm_by_sums() -> Any:
    mean = X.sum(-1, keepdim=True) / 16
    square = X.square().sum(-1, keepdim=True) / 16 - mean**2
    return torch.addcmul(SHIFT, (X - mean) * (square + 1e-5).rsqrt(), GAIN)


def layer_norm_of_the_rest() -> Any:
    rest = X - X.mean(-1, keepdim=True)
    spread = (rest * rest).mean(-1, keepdim=True)
    return rest * torch.rsqrt(spread + 1e-5) * GAIN + SHIFT


def layer_norm_by_var_mean() -> Any:
    var, mean = torch.var_mean(X, -1, unbiased=False, keepdim=True)
    return (X - mean).div_((var + 1e-6).sqrt()) * GAIN + SHIFT


def rms_norm_by_length() -> Any:
    return X / (torch.linalg.vector_norm(X, dim=-1, keepdim=True).square() / 16 + 1e-6).sqrt() * (1 + GAIN)


def channels_norm() -> Any:
    u = MAPS.mean(1, keepdim=True)
    return (MAPS - u) / torch.sqrt((MAPS - u).pow(2).mean(1, keepdim=True) + 1e-6)


def group_norm() -> Any:
    groups = MAPS.reshape(2, 4, -1)
    mean, var = groups.mean(-1, keepdim=True), groups.var(-1, keepdim=True, unbiased=False)
    return ((groups - mean) / (var + 1e-5).sqrt()).view_as(MAPS)


def layer_norm_by_einsum() -> Any:
    rest = X - X.mean(-1, keepdim=True)
    return rest * torch.rsqrt(torch.einsum("bsd,bsd->bs", rest, rest) / 16 + 1e-5)[..., None]


def rms_norm_by_einsum() -> Any:
    return X * torch.einsum("...d,...d->...", X, X).div(16).add(1e-6).rsqrt().unsqueeze(-1)


def norm_of_channels_by_einsum() -> Any:
    rest = MAPS - MAPS.mean(1, keepdim=True)
    return rest / torch.sqrt(torch.einsum("bchw,bchw->bhw", rest, rest).unsqueeze(1) / 8 + 1e-6)


def layer_norm_by_products_of_rows() -> Any:
    rest = X - X.mean(-1, keepdim=True)
    return rest / ((rest.unsqueeze(-2) @ rest.unsqueeze(-1)).squeeze(-1) / 16 + 1e-5).sqrt()


def batch_norm() -> Any:
    mean = MAPS.mean((0, 2, 3), keepdim=True)
    var = ((MAPS - mean) ** 2).mean((0, 2, 3), keepdim=True)
    return (MAPS - mean) / (var + 1e-5).sqrt() * GAIN[:8, None, None]


def batch_norm_up_to_a_threshold() -> Any:
    var, mean = torch.var_mean(MAPS, (0, 2, 3), correction=0)
    gain = GAIN[None, :8, None, None]
    return gain * (0.3 * (MAPS - mean[:, None, None]) / torch.sqrt(var[:, None, None] + 1e-4)) + 0.5


def layer_norm_that_is_scaled() -> Any:
    rest = X - X.mean(-1, keepdim=True)
    return 0.25 * (rest / (rest.square().mean(-1, keepdim=True) + 1e-5).sqrt())


def instance_norm_of_flat_maps() -> Any:
    flat = MAPS.view(2, 8, -1)
    std, mean = (flat.var(2, unbiased=False) + 1e-5).sqrt(), flat.mean(2)
    return (MAPS - mean[..., None, None]) / std[..., None, None]


def norm_of_equal_groups() -> Any:
    maps = MAPS.repeat(1, 2, 1, 1)
    groups = maps.reshape(2, 4, 4, 25)
    var, mean = torch.var_mean(groups, dim=(2, 3), keepdim=True, correction=0)
    return ((groups - mean) * (var + 1e-5).rsqrt()).view_as(maps)


def layer_norm_of_each_row() -> Any:
    def one(x: Any) -> Any:
        return (x - x.mean()) / torch.sqrt(x.var(correction=0) + 1e-5)

    return torch.func.vmap(torch.func.vmap(one))(X)


def layer_norm_by_std_mean() -> Any:
    std, mean = torch.std_mean(X, -1, unbiased=False, keepdim=True)
    return (X - mean) / std * GAIN + SHIFT


def norm_of_whole_samples_by_two_means() -> Any:
    rest = X - X.mean(2, keepdim=True).mean(1, keepdim=True)
    return rest / ((rest * rest).mean(1, keepdim=True).mean(2, keepdim=True) + 1e-7) ** 0.5


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (norm_of_whole_samples_by_two_means, "F.layer_norm"),
        (layer_norm_of_each_row, "F.layer_norm"),
        (layer_norm_by_std_mean, "F.layer_norm"),
        (batch_norm, "F.batch_norm(..., training=True)"),
        (batch_norm_up_to_a_threshold, "scale * F.batch_norm(..., training=True)"),
        (layer_norm_that_is_scaled, "F.layer_norm"),
        (instance_norm_of_flat_maps, "F.instance_norm"),
        (norm_of_equal_groups, "F.group_norm"),
        (layer_norm_by_einsum, "F.layer_norm"),
        (rms_norm_by_einsum, "F.rms_norm"),
        (norm_of_channels_by_einsum, "F.layer_norm"),
        (layer_norm_by_products_of_rows, "F.layer_norm"),
        (layer_norm_by_sums, "F.layer_norm"),
        (layer_norm_of_the_rest, "F.layer_norm"),
        (layer_norm_by_var_mean, "F.layer_norm"),
        (rms_norm_by_length, "F.rms_norm"),
        (channels_norm, "F.layer_norm"),
        (group_norm, "F.group_norm"),
    ],
)
def test_norms(act: Callable[[], Any], call: str) -> None:
    assert calls(act) == [call]


def test_a_product_over_another_dimension_is_no_norm() -> None:
    def act() -> Any:
        rest = X - X.mean(-1, keepdim=True)
        return rest * torch.rsqrt(torch.einsum("bsd,bsd->bd", rest, rest) / 16 + 1e-5)[:, None]

    assert calls(act) == []


def test_means_over_unequal_dimensions_are_no_norm() -> None:
    def act() -> Any:
        mean = X.mean(2, keepdim=True)
        square = X.square().mean(2, keepdim=True).mean(1, keepdim=True)
        return (X - mean) / (square - mean * mean + 1e-7).sqrt()

    assert calls(act) == []


def test_a_number_of_times_a_length_is_no_norm() -> None:
    assert calls(lambda: 0.3 * X / X.square().sum(-1, keepdim=True).sqrt()) == []


def test_standardised_features_are_no_batch_norm() -> None:
    assert calls(lambda: (LOGITS - LOGITS.mean(0)) / (LOGITS.std(0) + 1e-6)) == []


def test_a_norm_with_another_divisor_says_so() -> None:
    def act() -> Any:
        return (X - X.mean(-1, keepdim=True)) / (X.std(-1, keepdim=True) + 1e-6)

    (match,) = known(recorded(act))["norm"]
    assert match.reason


def moments(maps: Any) -> Any:
    flat = maps.flatten(2)
    spread = torch.sqrt(flat.var(2, unbiased=False) + 1e-5)
    return flat.mean(2)[..., None, None], spread[..., None, None]


def whitened(x: Any) -> Any:
    rest = x - x.mean(-1, keepdim=True)
    return rest * torch.rsqrt((rest * rest).mean(-1, keepdim=True) + 1e-5)


@pytest.mark.parametrize(("helper", "line"), [(moments, 3), (whitened, None)])
def test_a_helper_that_gives_mean_and_deviation_is_not_where_the_norm_is(helper: Any, line: Any) -> None:
    def act() -> Any:
        if helper is moments:
            mean, spread = moments(MAPS)
            return (MAPS - mean) / spread
        return whitened(X) * GAIN + SHIFT

    graph = recorded(act)
    (match,) = known(graph)["norm"]
    inside = helper.__code__.co_firstlineno + 2
    assert _place(graph, match) == (__file__, act.__code__.co_firstlineno + line if line else inside)


# -- losses ------------------------------------------------------------------------------------------


def one_hot_smoothed() -> Any:
    logs = LOGITS - LOGITS.logsumexp(1, keepdim=True)
    targets = F.one_hot(CLASSES, 9) * 0.9 + 0.1 / 9
    return -(targets * logs).sum(-1).mean()


def one_hot_of_an_identity() -> Any:
    return -(torch.eye(9)[CLASSES] * F.log_softmax(LOGITS, -1)).sum(-1).mean()


def one_hot_by_einsum() -> Any:
    logs = LOGITS.log_softmax(-1)
    return -torch.einsum("bc,bc->b", logs, F.one_hot(CLASSES, 9).float()).mean()


def one_hot_with_classes_second() -> Any:
    maps = torch.randn(2, 9, 4, 4)
    chosen = torch.nn.functional.one_hot(torch.randint(9, (2, 4, 4)), 9).movedim(-1, 1)
    return (maps.log_softmax(1) * chosen.to(maps.dtype)).sum(1).neg().mean()


def one_hot_of_shares_by_hand() -> Any:
    maps = torch.randn(2, 9, 4, 4)
    target = torch.randint(9, (2, 4, 4))
    shares = (maps - maps.amax(1, keepdim=True)).exp()
    shares = shares / shares.sum(1, keepdim=True)
    chosen = torch.nn.functional.one_hot(target, 9).permute(0, 3, 1, 2)
    each = -(chosen * torch.log(shares + 1e-9)).sum(1)
    scale = torch.linspace(0.5, 1.5, 9)[target]
    return (each * scale).sum() / scale.sum()


def gathered_with_padding() -> Any:
    logs = torch.log(torch.softmax(LOGITS, -1) + 1e-9)
    nll = -logs.gather(1, CLASSES[:, None]).squeeze(1)
    kept = CLASSES != 0
    return (nll * kept).sum() / kept.sum()


def picked_by_index() -> Any:
    return LOGITS.log_softmax(-1)[torch.arange(12), CLASSES].mean().neg()


def all_by_hand() -> Any:
    shifted = LOGITS - LOGITS.max(1, keepdim=True).values
    logs = shifted - shifted.exp().sum(1, keepdim=True).log()
    return F.nll_loss(logs, CLASSES)


def normaliser_less_scores() -> Any:
    top = LOGITS.float().max(dim=-1, keepdim=True).values
    whole = top.squeeze(-1) + (LOGITS - top).exp().sum(-1).log()
    return (whole - LOGITS.gather(-1, CLASSES.unsqueeze(-1)).squeeze(-1)).mean()


def normaliser_less_first_of_picked() -> Any:
    picked = torch.take_along_dim(LOGITS, CLASSES[:, None], 1)
    return (torch.logsumexp(LOGITS, 1) - picked[:, 0]).sum() / 12


def smoothed_and_centred() -> Any:
    centred = LOGITS - LOGITS.amax(1, keepdim=True)
    whole = centred.exp().sum(1).log()
    picked = centred.take_along_dim(CLASSES.unsqueeze(1), 1).squeeze(1)
    return (whole - 0.9 * picked - 0.1 * centred.mean(1)).mean()


def smoothed_by_a_sum() -> Any:
    picked = LOGITS.gather(1, CLASSES[:, None])[:, 0]
    return (LOGITS.logsumexp(1) - LOGITS.sum(1) * 0.2 / 9 - picked * 0.8).mean()


def smoothed_surprise() -> Any:
    target = F.one_hot(CLASSES, 9).to(LOGITS.dtype) * 0.9 + 0.1 / 9
    return torch.mean(torch.sum(target * (LOGITS.logsumexp(-1, keepdim=True) - LOGITS), dim=-1))


def surprise_by_hand() -> Any:
    centred = LOGITS - LOGITS.amax(-1, keepdim=True)
    surprise = centred.exp().sum(-1, keepdim=True).log() - centred
    return surprise[torch.arange(12), CLASSES].mean()


def normaliser_less_one_hot_product() -> Any:
    return (LOGITS.logsumexp(-1) - (F.one_hot(CLASSES, 9) * LOGITS).sum(-1)).mean()


def normaliser_less_smoothed_product() -> Any:
    hot = (torch.arange(9) == CLASSES[:, None]).float()
    return (LOGITS.logsumexp(-1) - torch.einsum("bc,bc->b", hot * 0.8 + 0.2 / 9, LOGITS)).sum() / 12


def own_pair_by_hand() -> Any:
    likeness = X[0] @ Y[0].t()
    likeness = likeness - likeness.amax(dim=1, keepdim=True).detach()
    logs = likeness - likeness.exp().sum(1, keepdim=True).log()
    return -logs.diagonal().mean()


def logsumexp_less_scores() -> Any:
    return -(LOGITS[torch.arange(12), CLASSES] - LOGITS.logsumexp(1)).sum()


def picked_share() -> Any:
    e = torch.exp(LOGITS / 0.5)
    share = e / e.sum(dim=1, keepdim=True)
    return -torch.log(share[torch.arange(12), CLASSES].clamp(min=1e-9)).mean()


def picked_softmax() -> Any:
    chosen = LOGITS.softmax(1).gather(1, CLASSES[:, None])
    return chosen.log().neg().sum() / 12


def first_column_of_all_but_some() -> Any:
    weights = torch.where(LOGITS > 2, 0.0, (LOGITS * 3).exp())
    return -(weights[:, 0] / (weights.sum(-1) + 1e-6)).log().sum()


def twins_among_all_others() -> Any:
    rows = F.normalize(torch.randn(8, 16), dim=-1)
    likeness = torch.exp(rows @ rows.mT / 0.1)
    twins = torch.cat((likeness.diagonal(4), likeness.diagonal(-4)))
    others = (likeness * (1 - torch.eye(8))).sum(0)
    return torch.mean(-torch.log(twins / others))


def own_pair_of_a_softmax_by_hand() -> Any:
    scores = torch.randn(9, 16) @ torch.randn(16, 9)
    e = (scores - scores.amax(1, keepdim=True)).exp()
    return (e / e.sum(1, keepdim=True)).diagonal().add(1e-8).log().neg().sum()


def masked_before_the_square() -> Any:
    gap = (X - Y) * (POSITIVE > 0.5)
    return gap.pow(2).sum() / (POSITIVE > 0.5).sum()


def square_by_a_product() -> Any:
    gap = (X - Y).flatten()
    return gap.dot(gap) / len(gap)


def in_bits() -> Any:
    shares = LOGITS.softmax(1)
    return -shares.gather(1, CLASSES[:, None]).log2().mean()


def chosen_by_comparing() -> Any:
    logs = LOGITS.log_softmax(1)
    return -torch.where(torch.arange(9) == CLASSES[:, None], logs, 0.0).sum(1).mean()


def other_classes_left_out() -> Any:
    logs = LOGITS.log_softmax(1)
    return -logs.masked_fill(torch.arange(9) != CLASSES[:, None], 0.0).sum() / 12


def own_pairs_by_an_identity() -> Any:
    scores = LOGITS[:9] @ LOGITS[:9].T
    return -(scores.log_softmax(1) * torch.eye(9)).sum() / 9


def all_at_once_by_a_tensordot() -> Any:
    logs = LOGITS.log_softmax(1)
    return -torch.tensordot(logs, F.one_hot(CLASSES, 9).float(), 2) / 12


def binary_by_logaddexp() -> Any:
    each = torch.logaddexp(X, torch.zeros_like(X)) - X * POSITIVE
    return each.mean()


def binary_chosen() -> Any:
    there = POSITIVE > 0.5
    return torch.where(there, F.logsigmoid(X), F.logsigmoid(-X)).neg().mean()


def binary_of_signs() -> Any:
    sign = torch.where(POSITIVE > 0.5, -1.0, 1.0)
    return torch.log1p(torch.exp(sign * X)).mean()


def binary_stable() -> Any:
    each = X.clamp(min=0) - X * POSITIVE + torch.log1p(torch.exp(-X.abs()))
    return each.mean()


def binary_of_sigmoid() -> Any:
    p = torch.sigmoid(X)
    a = POSITIVE * torch.log(p + 1e-12)
    b = (1 - POSITIVE) * torch.log(1 - p + 1e-12)
    return torch.mean(-(a + b) * 2.0)


def binary_with_a_weight_for_each_class() -> Any:
    there = POSITIVE * F.logsigmoid(X) * torch.rand(16)
    return -(there + (1 - POSITIVE) * F.logsigmoid(-X)).mean()


def binary_of_unequal_halves() -> Any:
    p = torch.sigmoid(X)
    return -(0.7 * POSITIVE * (p + 1e-8).log() + 0.3 * (1 - POSITIVE) * (1 - p + 1e-8).log()).sum()


def exponential_of_own_pair_over_all() -> Any:
    likeness = X[0] @ Y[0].t() / 0.2
    return -torch.log(likeness.diagonal().exp() / likeness.exp().sum(1)).mean()


def normaliser_less_own_pair() -> Any:
    likeness = X[0] @ Y[0].t() / 0.2
    return (likeness.logsumexp(1) - likeness.diag()).mean()


def weighted_huber() -> Any:
    gap = (X - Y).abs()
    quadratic = gap.clamp(max=0.5)
    return ((0.5 * quadratic**2 + 0.5 * (gap - quadratic)) * GAIN.detach()).sum() / 240


def masked_square() -> Any:
    gap = X - Y
    return (gap * gap * (Y > 0)).sum() / (Y > 0).sum()


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (one_hot_smoothed, "F.cross_entropy"),
        (one_hot_of_an_identity, "F.cross_entropy"),
        (one_hot_by_einsum, "F.cross_entropy"),
        (one_hot_with_classes_second, "F.cross_entropy"),
        (one_hot_of_shares_by_hand, "F.cross_entropy"),
        (gathered_with_padding, "F.cross_entropy"),
        (picked_by_index, "F.cross_entropy"),
        (all_by_hand, "F.cross_entropy"),
        (normaliser_less_scores, "F.cross_entropy"),
        (normaliser_less_first_of_picked, "F.cross_entropy"),
        (smoothed_and_centred, "F.cross_entropy"),
        (smoothed_by_a_sum, "F.cross_entropy"),
        (smoothed_surprise, "F.cross_entropy"),
        (surprise_by_hand, "F.cross_entropy"),
        (normaliser_less_one_hot_product, "F.cross_entropy"),
        (normaliser_less_smoothed_product, "F.cross_entropy"),
        (own_pair_by_hand, "F.cross_entropy"),
        (logsumexp_less_scores, "F.cross_entropy"),
        (picked_share, "F.cross_entropy"),
        (picked_softmax, "F.cross_entropy"),
        (first_column_of_all_but_some, "F.cross_entropy"),
        (twins_among_all_others, "F.cross_entropy"),
        (own_pair_of_a_softmax_by_hand, "F.cross_entropy"),
        (in_bits, "F.cross_entropy"),
        (chosen_by_comparing, "F.cross_entropy"),
        (other_classes_left_out, "F.cross_entropy"),
        (own_pairs_by_an_identity, "F.cross_entropy"),
        (all_at_once_by_a_tensordot, "F.cross_entropy"),
        (masked_before_the_square, 'F.mse_loss(..., reduction="none")'),
        (square_by_a_product, "F.mse_loss"),
        (binary_by_logaddexp, "F.binary_cross_entropy_with_logits"),
        (binary_chosen, "F.binary_cross_entropy_with_logits"),
        (binary_of_signs, "F.binary_cross_entropy_with_logits"),
        (binary_stable, "F.binary_cross_entropy_with_logits"),
        (binary_of_sigmoid, "F.binary_cross_entropy_with_logits"),
        (binary_with_a_weight_for_each_class, "F.binary_cross_entropy_with_logits(..., pos_weight=...)"),
        (binary_of_unequal_halves, "F.binary_cross_entropy_with_logits(..., pos_weight=...)"),
        (exponential_of_own_pair_over_all, "F.cross_entropy"),
        (normaliser_less_own_pair, "F.cross_entropy"),
        (weighted_huber, "F.smooth_l1_loss(..., beta=...)"),
        (masked_square, 'F.mse_loss(..., reduction="none")'),
    ],
)
def test_losses(act: Callable[[], Any], call: str) -> None:
    assert calls(act) == [call]


def test_a_weighted_error_is_at_the_line_of_the_error() -> None:
    def act() -> Any:
        p = torch.sigmoid(X)
        error = -(POSITIVE * torch.log(p) + (1 - POSITIVE) * torch.log(1 - p))
        weight = (POSITIVE - p).abs() ** 2
        return (weight * error).mean()

    graph = recorded(act)
    (match,) = known(graph)["loss"]
    site = graph.site(match.result)
    assert site is not None
    assert site.line == act.__code__.co_firstlineno + 2
    assert match.call == 'F.binary_cross_entropy_with_logits(..., reduction="none")'


def test_a_loss_is_at_the_line_that_gives_one_number_for_each_row() -> None:
    def act() -> Any:
        logs = LOGITS.log_softmax(1)
        each = -logs.gather(1, CLASSES[:, None])
        return each.sum() / 12

    def smoothed() -> Any:
        logs = LOGITS.log_softmax(1)
        labels = torch.empty_like(logs).fill_(0.1 / 8).scatter_(1, CLASSES[:, None], 0.9)
        each = (-labels * logs).sum(1)
        return each.mean()

    for one, line in ((act, 2), (smoothed, 3)):
        graph = recorded(one)
        (match,) = known(graph)["loss"]
        site = graph.site(match.result)
        assert site is not None
        assert site.line == one.__code__.co_firstlineno + line
        assert ("smooth" in match.words) == (one is smoothed)


def test_a_share_that_is_not_of_the_sum_is_no_cross_entropy() -> None:
    def of_other_exponentials() -> Any:
        return -(torch.randn(12, 9).exp()[:, 0] / LOGITS.exp().sum(1)).log().mean()

    def of_no_exponentials() -> Any:
        kept = LOGITS.square() + 1
        return -(kept[:, 0] / kept.sum(1)).log().mean()

    def of_exponentials_of_others() -> Any:
        return -(torch.randn(9, 9).diagonal().exp() / LOGITS[:9].exp().sum(1)).log().mean()

    def of_a_sum_and_more() -> Any:
        every = LOGITS.exp()
        return -((every * (LOGITS > 0)).sum(1) / (every.sum(1) + LOGITS.abs().sum(1))).log().mean()

    for act in (of_other_exponentials, of_no_exponentials, of_exponentials_of_others, of_a_sum_and_more):
        assert "F.cross_entropy" not in calls(act), act.__name__


def test_a_mean_of_roots_is_another_error() -> None:
    assert calls(lambda: torch.sqrt((X - Y) ** 2 + 1e-6).mean()) == []
    assert calls(lambda: (X - Y).pow(2).sum(-1).sqrt().mean()) == []


def of_weights_and_mask(mask: Any, picked: Callable[[Any], Any]) -> Callable[[], Any]:
    """Rows of which an exponential is divided by the sum of what ``mask`` makes of all."""

    def act() -> Any:
        every = torch.exp(LOGITS / 0.1)
        return -(picked(every) / mask(every).sum(1)).log().mean()

    return act


def first(every: Any) -> Any:
    return every[:, 0]


def scores_less_a_masked_sum() -> Any:
    likeness = torch.randn(9, 9) * 14
    kept = torch.where(torch.eye(9) > 0, 0.0, likeness.exp())
    total = kept.sum(-1, keepdim=True).log()
    return torch.mean(total - likeness.take_along_dim(torch.arange(9)[:, None].roll(3, 0), 1))


def picked_of_what_a_masked_sum_leaves() -> Any:
    shifted = LOGITS - LOGITS.max(1, keepdim=True)[0]
    left = shifted - torch.log((shifted.exp() * (LOGITS < 2)).sum(1, keepdim=True) + 1e-7)
    return -left[torch.arange(12), CLASSES].sum() / 12


def mean_of_what_belongs_together() -> Any:
    rest = LOGITS - LOGITS.max(1, keepdim=True)[0]
    left = rest - (rest.exp() * (LOGITS < 2)).sum(1, keepdim=True).log()
    together = (CLASSES[:, None] == torch.arange(9)).float()
    return -((together * left).sum(1) / together.sum(1)).mean()


def pairs_apart() -> Any:
    first, second = X.flatten(0, 1)[:9], Y.flatten(0, 1)[:9]
    both = torch.cat([first, second])
    others = torch.exp(both @ both.T / 4).masked_fill(torch.eye(18) > 0, 0.0).sum(1)
    own = torch.exp((first * second).sum(-1) / 4)
    return (torch.cat([own, own]) / others).log().neg().mean()


def some_of_some_and_others() -> Any:
    every = LOGITS.div(0.2).exp()
    right = torch.where(LOGITS > 0, every, 0.0).sum(1)
    return torch.mean(-torch.log(right / (right + (every * (LOGITS < 0)).sum(1))))


@pytest.mark.parametrize(
    "act",
    [
        mean_of_what_belongs_together,
        pairs_apart,
        some_of_some_and_others,
        scores_less_a_masked_sum,
        picked_of_what_a_masked_sum_leaves,
        of_weights_and_mask(lambda every: every * (torch.arange(9) > 0), first),  # decoupled: without it
        of_weights_and_mask(lambda every: every * torch.linspace(1, 2, 9), first),  # hard ones weigh more
        of_weights_and_mask(lambda every: every.masked_fill(LOGITS > 2, 0.0), first),
    ],
)
def test_a_share_of_a_sum_that_may_lack_it_says_when_it_is_the_same(act: Callable[[], Any]) -> None:
    (match,) = known(recorded(act))["loss"]
    assert match.kind != "Cross entropy"
    assert "only if" in match.reason


def test_a_share_of_the_very_numbers_that_are_summed_is_a_cross_entropy() -> None:
    def masked() -> Any:
        kept = LOGITS.exp().masked_fill(LOGITS > 2, 0.0)
        return -(kept.gather(1, CLASSES[:, None]).squeeze(1) / kept.sum(dim=1)).log().mean()

    def whole() -> Any:
        every = LOGITS.exp()
        return -(every[torch.arange(12), CLASSES] / every.sum(1)).log().mean()

    (match,) = known(recorded(masked))["loss"]
    assert match.kind == "Cross entropy" and "-inf" in match.reason
    (match,) = known(recorded(whole))["loss"]
    assert match.kind == "Cross entropy" and not match.reason


def test_a_large_number_beside_a_probability_is_no_guard() -> None:
    def clamped() -> Any:
        return -LOGITS.softmax(1).gather(1, CLASSES[:, None]).clamp(min=0.05).log().mean()

    def mixed() -> Any:
        return -torch.log(torch.softmax(LOGITS, -1) + 0.1).gather(1, CLASSES[:, None]).mean()

    assert calls(clamped) == calls(mixed) == []


def test_a_masked_sum_of_other_scores_is_no_cross_entropy() -> None:
    def of_others() -> Any:
        kept = torch.randn(12, 9).exp().masked_fill(LOGITS > 2, 0.0)
        return -(LOGITS - kept.sum(1, keepdim=True).log()).gather(1, CLASSES[:, None]).mean()

    def of_no_class() -> Any:
        kept = LOGITS.exp().masked_fill(LOGITS > 2, 0.0)
        return -(LOGITS - kept.sum(1, keepdim=True).log()).mean()

    for act in (of_others, of_no_class):
        assert "F.cross_entropy" not in calls(act), act.__name__


def test_an_energy_and_a_score_of_another_tensor_are_no_cross_entropy() -> None:
    other = torch.randn(12, 9)

    def of_another() -> Any:
        return (LOGITS.logsumexp(1) - other.gather(1, CLASSES[:, None]).squeeze(1)).mean()

    def energy() -> Any:
        return (LOGITS.logsumexp(1) * 0.5).mean()

    def mixture() -> Any:
        copied = torch.sigmoid(other[:, :1])
        return -(LOGITS.softmax(1).gather(1, CLASSES[:, None]) + copied).log().mean()

    assert calls(of_another) == calls(energy) == calls(mixture) == []


def test_probabilities_that_are_needed_for_more_than_the_loss_stay() -> None:
    other = torch.randn(12, 9)

    def surprise(shares: torch.Tensor) -> torch.Tensor:
        return -shares.gather(1, CLASSES[:, None]).log().mean()

    def alone() -> Any:
        return surprise(LOGITS.softmax(1))

    def with_entropy() -> Any:
        shares = LOGITS.softmax(1)
        return surprise(shares) + (shares * shares.log()).sum()

    def with_value() -> Any:
        shares = LOGITS.softmax(1)
        return surprise(shares) * (shares.detach() * other).sum()

    assert calls(alone) == ["F.cross_entropy"]
    assert "F.cross_entropy" not in calls(with_entropy) + calls(with_value)


def test_what_makes_a_smoothed_target_belongs_to_the_loss() -> None:
    def act() -> Any:
        logs = LOGITS.log_softmax(-1)
        target = torch.full_like(logs, 0.1 / 9)
        target.scatter_(1, CLASSES[:, None], 0.9 + 0.1 / 9)
        return (-target * logs).sum(1).mean()

    (match,) = known(recorded(act))["loss"]
    assert {"full_like", "scatter", "neg", "_log_softmax", "mean"} <= {node.name for node in match.nodes}
    assert match.words == ("one_hot", "smooth")


@pytest.mark.parametrize(
    ("smoothing", "words"), [(0.1, ("one_hot", "smooth")), (1e-6, ("one_hot", "smooth")), (0.0, ("one_hot",))]
)
def test_labels_that_are_smoothed_are_tried_so(smoothing: float, words: tuple[str, ...]) -> None:
    def act() -> Any:
        hot = torch.nn.functional.one_hot(CLASSES, 9).to(LOGITS.dtype)
        soft = hot * (1 - smoothing) + smoothing / 9
        return (-soft * LOGITS.log_softmax(-1)).sum(1).mean()

    (match,) = known(recorded(act))["loss"]
    assert match.words == words


@pytest.mark.parametrize(("act", "words"), [(all_by_hand, ("by_hand",)), (picked_by_index, ())])
def test_a_softmax_by_hand_is_tried_by_hand(act: Callable[[], Any], words: tuple[str, ...]) -> None:
    (match,) = known(recorded(act))["loss"]
    assert match.words == words


def test_scores_that_are_not_one_in_all_are_no_cross_entropy() -> None:
    picked = LOGITS.gather(1, CLASSES[:, None])[:, 0]

    def weighted() -> Any:
        return (LOGITS.logsumexp(1) - 2 * LOGITS.gather(1, CLASSES[:, None])[:, 0]).mean()

    def smoothed_too_far() -> Any:
        taken = LOGITS.gather(1, CLASSES[:, None])[:, 0]
        return (LOGITS.logsumexp(1) - taken - 0.1 * LOGITS.mean(1)).mean()

    def of_nothing_picked() -> Any:
        return (LOGITS.logsumexp(1) - LOGITS.mean(1)).mean()

    def of_others() -> Any:
        return (LOGITS.logsumexp(1) - 0.9 * picked - 0.1 * LOGITS.mean(1)).mean()

    def weighed_too_much() -> Any:
        hot = F.one_hot(CLASSES, 9).float() + 0.1
        return (LOGITS.logsumexp(1) - (hot * LOGITS).sum(1)).mean()

    for act in (weighted, smoothed_too_far, of_nothing_picked, of_others, weighed_too_much):
        assert "F.cross_entropy" not in calls(act), act.__name__


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_mean_of_some_rows_of_torchs_own_cross_entropy_is_no_formula(smoothing: float) -> None:
    def counted() -> Any:
        some = torch.zeros(12, dtype=torch.bool).scatter_(0, torch.tensor([1, 4]), True)
        each = F.cross_entropy(LOGITS, CLASSES, reduction="none", label_smoothing=smoothing)
        return (each * some).sum() / some.sum()

    def harder_ones() -> Any:
        each = F.nll_loss(F.log_softmax(LOGITS, 1), CLASSES, reduction="none")
        return ((1 - torch.exp(-each)) ** 2 * each).mean()

    assert calls(counted) + calls(harder_ones) == []
