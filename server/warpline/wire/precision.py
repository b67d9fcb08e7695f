"""Names of the arithmetic that products run in, and how torch's trace names what is given to them."""

from __future__ import annotations

from typing import Literal

Precision = Literal["tf32", "bf16", "fp16", "fp32"]

#: Precision of a product by the type of its tensors, as the trace names it; float32 may run as "tf32".
OF_DTYPE: dict[str, Precision] = {"float": "fp32", "c10::Half": "fp16", "c10::BFloat16": "bf16"}
#: Of two bytes: on tensor cores as they are.
HALF = frozenset({"c10::Half", "c10::BFloat16"})
#: All that gradients flow through, as the trace names them; and of these the ones in double precision.
REAL = frozenset({"float", "double"}) | HALF
FLOATS = REAL | {"c10::complex<float>", "c10::complex<double>"}
DOUBLE = frozenset({"double", "c10::complex<double>"})
#: Bytes of a number, by precision.
BYTES: dict[Precision, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
#: Values of ``float32_matmul_precision`` that let float32 products run in TF32.
TF32_SETTINGS = frozenset({"high", "medium"})
