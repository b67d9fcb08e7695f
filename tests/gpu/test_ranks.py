"""On two GPUs: exchanges between ranks are on their lines, and what of them nothing hides is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu import sharing
from tests.gpu.apart import CLAIMS, Claim


@pytest.mark.parametrize("claim", CLAIMS["nccl"], ids=lambda claim: claim.__name__)
def test_two_ranks(claim: Claim, run_of: Callable[[str], Path]) -> None:
    if len(sharing.names()) < 2:
        pytest.skip("one GPU here; this needs two")
    claim("nccl", run_of)
