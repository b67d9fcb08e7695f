"""On a GPU: compiled code that replays CUDA graphs writes each step's tensors over the last one's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu.apart import CLAIMS, Claim


@pytest.mark.parametrize("claim", CLAIMS["vae"], ids=lambda claim: claim.__name__)
def test_a_model_compiled_to_graphs(claim: Claim, run_of: Callable[[str], Path]) -> None:
    claim("vae", run_of)
