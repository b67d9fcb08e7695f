"""Only what the user's own code calls, one after the other, counts as passes that could be fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.annotated import FILE, read_example
from tests.rulekit.graph.recording import recorded
from warpline.model.profile import LineCost, Op
from warpline.rulekit.graph.passes import Passes, of_graph

torch = pytest.importorskip("torch")
nn = torch.nn

X = torch.randn(4, 16)
ALPHA = torch.nn.Parameter(torch.rand(16))
LAYERS = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(), nn.Linear(16, 16))


def found(act: Callable[[], Any], cost: LineCost | None = None) -> dict[int, Passes]:
    """By line, counted from the function's first."""
    first = act.__code__.co_firstlineno
    by_line = of_graph(recorded(act), lambda file, line: cost)
    return {line - first: passes for (_, line), passes in by_line.items()}


def snake() -> Any:
    wave = torch.sin(ALPHA * X) ** 2
    return X + wave / (ALPHA + 1e-9)


def well_made() -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        y = X + LAYERS(nn.functional.normalize(X))
        return torch.relu(nn.functional.mse_loss(LAYERS(y), X))


def test_a_chain_of_operators() -> None:
    assert {line: passes.count for line, passes in found(snake).items()} == {1: 3, 2: 3}


def test_layers_of_torchs_and_casts_are_no_passes() -> None:
    assert sum(passes.count for passes in found(well_made).values()) == 0


def test_a_line_that_calls_layers_as_well_is_divided() -> None:
    def act() -> Any:
        return (LAYERS(X) * 2 + 1).exp()

    ops = (
        Op("aten::addmm", "forward", 2, 9.0, 9.0),
        Op("aten::gelu", "forward", 1, 2.0, 2.0),
        Op("aten::native_layer_norm", "forward", 1, 1.0, 1.0),
        *(Op(f"aten::{name}", "forward", 1, 1.0, 1.0) for name in ("mul", "add", "exp")),
    )
    ((line, passes),) = found(act, LineCost("x.py", 1, "act", ops=ops)).items()
    assert (line, passes.count) == (1, 3)
    assert passes.share == pytest.approx(3 / 6)


def test_runs_without_a_record_are_judged_as_before() -> None:
    from warpline.rulekit import Context
    from warpline.rulekit.graph import passes

    example = read_example("x = 1  #> cost device_ms=1\n")
    assert passes(Context(example.profile, {FILE: example.text}.get)) is None


def test_residual_sums_with_a_product_between_are_no_neighbours() -> None:
    """One kernel cannot make both: the second sum needs what the product makes of the first."""

    def residual() -> Any:
        x = X + ALPHA
        x = x + LAYERS[0](x)
        return x + LAYERS[4](x).view(4, 16)

    def gated() -> Any:
        x = X + ALPHA
        y = LAYERS[0](x)
        return x + y * ALPHA.sin()  # the product and the sum are neighbours, the first sum is not theirs

    def skipped() -> Any:
        x = X + ALPHA
        y = LAYERS[0](X)
        return x * 2 + y  # the layer does not need the first sum

    assert found(residual) == {}
    assert {line: one.count for line, one in found(gated).items()} == {3: 3}
    assert {line: one.count for line, one in found(skipped).items()} == {1: 1, 3: 2}


def test_complex_numbers_are_no_passes() -> None:
    def act() -> Any:
        spectrum = torch.fft.rfft2(X)
        return ((spectrum * 2 + 1) / 3).abs()

    assert not found(act)
