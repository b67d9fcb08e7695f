"""Float64 that a factorization may need is a hint, and no edit takes it away."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.float64_on_device import Float64OnDevice

PROCESS = """\
import torch
{asks}
for step in range(400):
    factor = {call}  #> cost device_ms=20 step_ms=20; op {op} device_ms=20 dtypes={dtypes} shapes=[[64,64]]
    matrix = matrix + 1  #> cost device_ms=20; op aten::add device_ms=20 dtypes=double shapes=[[64,64]]
"""
ASKS = "torch.set_default_dtype(torch.float64)"
FROM_NUMPY = "import numpy\nmatrix = torch.from_numpy(numpy.eye(64))"


def _found(asks: str, call: str, op: str, dtypes: str = "double") -> Draft:
    text = PROCESS.format(asks=asks, call=call, op=op, dtypes=dtypes)
    example = read_example(text)
    (draft,) = Float64OnDevice().find(Context(example.profile, texts(example)))
    return draft


@pytest.mark.parametrize(
    "op", ["aten::linalg_cholesky_ex", "aten::linalg_lu_factor", "aten::_linalg_eigh", "aten::linalg_solve"]
)
def test_a_factorization_in_float64_that_the_script_asks_for(op: str) -> None:
    draft = _found(ASKS, "torch.linalg.cholesky(matrix)", op)
    assert draft.severity == "hint"
    assert not draft.fixes
    assert "may fail without it" in draft.message


@pytest.mark.parametrize(
    ("asks", "op", "dtypes"),
    [
        (ASKS, "aten::mm", "double"),
        (FROM_NUMPY, "aten::linalg_cholesky_ex", "double"),  # nobody asked for float64
        (ASKS, "aten::linalg_cholesky_ex", "float"),
        (ASKS, "aten::solve_ivp", "double"),
    ],
)
def test_what_does_not_need_it(asks: str, op: str, dtypes: str) -> None:
    assert _found(asks, "work(matrix)", op, dtypes).severity != "hint"
