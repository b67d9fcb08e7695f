"""What autocast on a GPU makes of a recorded step: which tensors would have 16 bits, and what would fail.

The lists are those of torch's dispatcher (the operators with a kernel for ``AutocastCUDA``), by the names in
the record: below autograd, where a composite operator is what it is made of. What does not run in bfloat16
is what torch's own table of tests (``op_db``) says for CUDA; what wants all of one type was tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from warpline.rulekit.graph.graph import Graph, Node, Ref

#: In 16 bits under autocast: what multiplies.
PRODUCTS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "addr", "matmul", "linear", "einsum",
    "convolution", "_convolution", "cudnn_convolution", "cudnn_convolution_transpose", "conv1d", "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "linalg_vecdot", "linalg_multi_dot", "chain_matmul", "prelu", "_prelu_kernel",
    "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "_cudnn_rnn", "mkldnn_rnn_layer", "lstm", "gru", "rnn_tanh", "rnn_relu",
})  # fmt: skip
_ATTENTION = "scaled_dot_product"
#: In float32 under autocast.
IN_FLOAT32 = frozenset({
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "pow", "reciprocal",
    "rsqrt", "sinh", "tan", "softplus", "softmax", "_softmax", "log_softmax", "_log_softmax", "logsumexp",
    "sum", "prod", "cumsum", "cumprod", "norm", "linalg_vector_norm", "linalg_matrix_norm", "renorm", "dist",
    "layer_norm", "native_layer_norm", "group_norm", "native_group_norm", "rms_norm", "_fused_rms_norm",
    "cdist", "_cdist_forward", "pdist", "_pdist_forward", "cosine_similarity", "cosine_embedding_loss",
    "binary_cross_entropy_with_logits", "cross_entropy_loss", "nll_loss", "nll_loss_forward", "nll_loss2d",
    "nll_loss2d_forward", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "poisson_nll_loss", "hinge_embedding_loss", "margin_ranking_loss", "multilabel_margin_loss",
    "multi_margin_loss", "soft_margin_loss", "triplet_margin_loss", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_bicubic2d", "upsample_trilinear3d",
})  # fmt: skip
#: Under autocast, and not in place, all inputs get the widest type among them.
_PROMOTED = frozenset({
    "addcdiv", "addcmul", "atan2", "bilinear", "_trilinear", "cross", "linalg_cross", "dot", "vdot",
    "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "index_put", "tensordot", "scatter_add",
})  # fmt: skip
#: These raise where one input is float32 and another one has 16 bits.
ALIKE = frozenset({
    "index_add", "index_copy", "index_put", "_index_put_impl", "_unsafe_index_put", "index_reduce", "put",
    "lerp", "heaviside", "masked_scatter", "scatter", "scatter_add", "scatter_reduce", "dot", "vdot",
    "cross", "linalg_cross", "grid_sampler_2d", "grid_sampler_3d", "_trilinear", "_embedding_bag",
    "_sparse_addmm", "sparse_sampled_addmm",
})  # fmt: skip
#: These take no bfloat16 on a GPU, and most of them no float16; gradients included.
_WIDE = re.compile(
    r"_fft_\w+|complex|polar|view_as_complex|angle|histc|histogramdd|igammac?|lu_unpack|geqrf|ormqr|orgqr"
    r"|_?linalg_(?:svd|eigh?|eigvals|eigvalsh|qr|inv|inv_ex|det|slogdet|solve|solve_ex|cholesky|cholesky_ex"
    r"|lu|lu_factor|lu_factor_ex|lu_solve|lstsq|ldl_factor|ldl_factor_ex|ldl_solve|solve_triangular"
    r"|householder_product|pinv)|cholesky|cholesky_inverse|_cholesky_solve_helper|cholesky_solve"
    r"|triangular_solve|_?ctc_loss|_standard_gamma|_sample_dirichlet"
    r"|special_(?:airy_ai|bessel_\w+|chebyshev_\w+|erfcx|hermite_\w+|i1e?|laguerre_\w+|legendre_\w+"
    r"|log_ndtr|modified_\w+|ndtri|scaled_\w+|shifted_\w+|spherical_\w+|zeta)"
)
#: Of the composite ones a trace has the call, and the record what they are made of.
WIDE_CALLS = frozenset({"quantile", "nanquantile"})
ALIKE_CALLS = frozenset({"isclose", "allclose"})
#: What each of these reads besides its first input may have another type.
_AS_FIRST = re.compile(
    r"\w*batch_norm\w*|native_group_norm|native_layer_norm|_fused_rms_norm|masked_fill|copy"
)
#: How many dimensions each factor of a product has. A sparse tensor stands for its values, which have others.
_RANKS = {
    "mm": ((0, 2), (1, 2)), "addmm": ((1, 2), (2, 2)), "bmm": ((0, 3), (1, 3)),
    "baddbmm": ((1, 3), (2, 3)), "mv": ((0, 2), (1, 1)), "addmv": ((1, 2), (2, 1)),
}  # fmt: skip
#: Namespaces of operators that know autocast, or that are made of those of ``aten``.
_KNOWN = ("aten", "prims", "torchvision", "profiler", "c10d", "_c10d_functional")
_LARGEST_HALF = 65504.0

#: Why an operator fails: it gets 16 bits and takes none; it gets two types and takes one; a factor is sparse;
#: autocast refuses it; what it takes is unknown.
TOO_NARROW, MIXED, SPARSE, REFUSED, OWN = "too narrow", "mixed", "sparse", "refused", "own"


def is_wide(name: str) -> bool:
    """Whether an operator takes no 16 bits, by a composite one's name (``fft_rfft``) or the record's."""
    return bool(_WIDE.fullmatch(name) or re.fullmatch(r"i?stft|fft_\w+(?<!freq)(?<!shift)", name))


@dataclass(frozen=True, slots=True)
class Failure:
    """``operator``: its name without namespace."""

    node: Node
    operator: str
    why: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What the text says of an operator's line: ``on`` where it would run under autocast; ``cast`` where it
    casts by itself, which the record does not have where the type is that already; ``told`` where it asks for
    another tensor's type."""

    on: bool
    cast: bool = False
    told: bool = False


class Lowered:
    """``short``: values that would have 16 bits; ``failures``: operators that would raise, in their order."""

    def __init__(
        self,
        graph: Graph,
        at: Callable[[Node], Situation],
        calls: Callable[[Node], frozenset[str]] = lambda node: frozenset(),
        *,
        half: str = "bfloat16",
    ) -> None:
        """``at``: what the text says of an operator's line. ``calls``: the composite operators that a trace
        has there. ``half``: the type with 16 bits."""
        self.short: set[int] = set()
        #: Either type: the line asks for that of another tensor, which the record does not name.
        self.unknown: set[int] = set()
        self.failures: list[Failure] = []
        self._graph, self._half = graph, half
        for node in graph.nodes:
            where = at(node)
            name = graph.called(node)
            called = calls(node) & (WIDE_CALLS | ALIKE_CALLS)
            why = self._fails(node, name, where, called)
            if why:
                self.failures.append(Failure(node, next(iter(called), name), why))
            self._make(node, name, where)

    def leaving(self, inside: Collection[int], *, unread: bool = False) -> set[int]:
        """Values with 16 bits that the operators ``inside`` (by index) make and others read. ``unread``: or
        that none reads."""
        made = {value for node in self._graph.nodes if node.index in inside for value in node.outputs}
        left = set()
        for value in made & self.short:
            readers = self._graph.consumers.get(value, ())
            if any(one.index not in inside for one in readers) or (unread and not readers):
                left.add(value)
        return left

    def _fails(self, node: Node, name: str, where: Situation, calls: frozenset[str]) -> str:
        full = self._graph.flow.names[self._graph.flow.name[node.index]]
        if where.on and name == "binary_cross_entropy":
            return REFUSED
        if where.on and self._is_sparse(node, name):
            return SPARSE
        given = self._floats(node)
        short = [value for value in given if value in self.short]
        if not short or where.cast:
            return ""
        if full.partition(".")[0] not in _KNOWN:
            return OWN
        in_place = self._graph.is_in_place(node) or full.endswith(".out")
        if where.on and not in_place and name in IN_FLOAT32:
            return ""
        if _WIDE.fullmatch(name) or full == "aten.view.dtype" or calls & WIDE_CALLS:
            return TOO_NARROW
        if name in ("_cdist_forward", "_pdist_forward") or self._overflows(node, name):
            return TOO_NARROW
        alike = name in ALIKE or name in PRODUCTS or bool(calls & ALIKE_CALLS)
        cast = where.on and not in_place and (name in PRODUCTS or name in _PROMOTED)
        mixed = any(value not in self.short and self._graph.shape(value) for value in given)
        return MIXED if alike and not cast and mixed else ""

    def _overflows(self, node: Node, name: str) -> bool:
        """Whether float16 has no such number to fill with."""
        value = node.argument(2, "value") if name == "masked_fill" and self._half == "float16" else None
        return isinstance(value, (int, float)) and _LARGEST_HALF < abs(value) < float("inf")

    def _is_sparse(self, node: Node, name: str) -> bool:
        if node.name != name:
            return False  # in its usual form
        for at, rank in _RANKS.get(name, ()):
            factor = node.arguments[at] if at < len(node.arguments) else None
            if isinstance(factor, Ref) and len(self._graph.shape(factor.value)) != rank:
                return True
        return False

    def _is_complex(self, value: int) -> bool:
        return self._graph.dtype(value).startswith("complex")

    def _floats(self, node: Node) -> list[int]:
        """The inputs that are float32 in the record, and complex numbers made of what would have 16 bits."""
        return [
            value for value in node.inputs if self._graph.dtype(value) == "float32" or value in self.short
        ]

    def _make(self, node: Node, name: str, where: Situation) -> None:
        """Note what the operator's results would be."""
        given = self._floats(node)
        short, unknown = self._type(node, name, where, given)
        for value in node.outputs:
            turned = short and name in ("_to_copy", "to") and self._is_complex(value)
            if self._graph.dtype(value) == "float32" or turned:
                self.short.discard(value)
                self.unknown.discard(value)
                if unknown:
                    self.unknown.add(value)
                elif short:
                    self.short.add(value)

    def _type(self, node: Node, name: str, where: Situation, given: list[int]) -> tuple[bool, bool]:
        """``(16 bits, unknown)`` of the results."""
        in_place = self._graph.is_in_place(node)
        if where.on and not in_place:
            if name in PRODUCTS or _ATTENTION in name:
                return True, False
            if (
                name in IN_FLOAT32
                or "torchvision" in self._graph.flow.names[self._graph.flow.name[node.index]]
            ):
                return False, False
        made = node.outputs[0] if node.outputs else None
        if node.named.get("dtype") is not None and made is not None and not self._is_complex(made):
            return False, where.told
        if in_place or _AS_FIRST.fullmatch(name):
            given = given[:1]
        # A tensor without dimensions decides only among others like it.
        given = [value for value in given if self._graph.shape(value)] or given
        if any(value not in self.short and value not in self.unknown for value in given):
            return False, False
        unknown = any(value in self.unknown for value in given)
        return bool(given) and not unknown, unknown
