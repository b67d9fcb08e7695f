"""Addresses in a Triton kernel: the stride between neighbouring elements of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import libcst as cst

from warpline.rulekit.terms import Flow, Term, descend
from warpline.rulekit.terms.term import without_casts
from warpline.rulekit.triton import TritonKernel
from warpline.syntax.source import Source

#: A factor of what is subtracted.
_MINUS = Term("const", value=-1)


#: A sum of products.
Products = tuple[tuple[Term, ...], ...]


@dataclass(frozen=True, slots=True)
class Access:
    call: cst.Call
    store: bool
    products: Products  # of the address
    scattered: bool


def accesses_of(kernel: TritonKernel, flow: Flow) -> Iterator[Access]:
    """Each ``tl.load`` and ``tl.store`` of a kernel, with its address as a sum of products."""
    for call in descend(kernel.function, cst.Call):
        store = kernel.source.is_named(call.func, "triton.language.store")
        if (store or kernel.source.is_named(call.func, "triton.language.load")) and call.args:
            term = flow.terms.get(call.args[0].value)
            if term is not None:
                products = _products(term, kernel)
                yield Access(call, store, products, _is_scattered(products, kernel))


def index_of(access: Access, kernel: TritonKernel, flow: Flow) -> cst.BaseExpression:
    """What computes a scattered address: the first assigned index that is scattered too and in its sum, or
    the call itself."""
    for value, products in _assigned(kernel, flow):
        if _is_scattered(products, kernel) and set(products) <= set(access.products):
            return value
    return access.call


@dataclass(frozen=True, slots=True)
class Lanes:
    """``index`` computes the index of the lanes; ``walked``: a loop walks through it."""

    index: cst.BaseExpression
    walked: bool


def lanes_of(accesses: Sequence[Access], kernel: TritonKernel, flow: Flow) -> Lanes | None:
    """What computes the index of the lanes where it is the wrong one: every address of a block is scattered,
    and what runs along memory is the number of the program."""
    blocks = [one for one in accesses if any(map(is_range, chain(*one.products)))]
    if not blocks or not all(
        one.scattered and any(len(a) == 1 and is_row(a[0]) for a in one.products) for one in blocks
    ):
        return None
    for value, products in _assigned(kernel, flow):
        if any(map(is_range, chain(*products))) and not _is_scattered(products, kernel):
            return Lanes(value, bool(kernel.source.loops(value)))
    return None


def remainder_of(accesses: Sequence[Access], kernel: TritonKernel, flow: Flow) -> bool:
    """Whether the lanes' index is a remainder, by which no address runs along memory: the block runs through
    an array of two dimensions, and down its columns."""
    blocks = [one for one in accesses if any(map(is_range, chain(*one.products)))]
    if not blocks or not all(one.scattered for one in blocks):
        return False
    return any(
        term.op == "Modulo" and any(map(is_range, chain(*_products(term, kernel))))
        for term in flow.terms.values()
    )


def _assigned(kernel: TritonKernel, flow: Flow) -> Iterator[tuple[cst.BaseExpression, Products]]:
    """Each assigned expression in source order, with its form as a sum of products."""
    for assign in descend(kernel.function, cst.Assign):
        term = flow.terms.get(assign.value)
        if term is not None:
            yield assign.value, _products(term, kernel)


def _products(term: Term, kernel: TritonKernel) -> Products:
    """The sum of products that ``term`` is, for lanes that are neighbours.

    Nearly all neighbours have the same quotient by a large number, and remainders that are one apart: so a
    quotient is a term like any other, and a remainder is what was divided."""
    term = without_casts(term)
    if term.op == "add":
        return tuple(product for arg in term.args for product in _products(arg, kernel))
    if term.op == "sub":
        left, right = (_products(arg, kernel) for arg in term.args)
        return (*left, *((_MINUS, *product) for product in right))
    if term.op == "mul":
        left, right = (_products(arg, kernel) for arg in term.args)
        return tuple((*a, *b) for a in left for b in right)
    if term.op == "Modulo" and _is_large(term.args[1], kernel):
        return _products(term.args[0], kernel)
    if term.op == "index":
        inner = _products(term.args[0], kernel)
        return inner if any(map(is_range, chain(*inner))) else ((term,),)  # offs[:, None]
    return ((term,),)


def is_range(term: Term) -> bool:
    """Whether a term is ``tl.arange``: the index inside a block."""
    return term.op == "arange" or (term.op == "call" and str(term.value[0]).endswith("language.arange"))


def _factors(products: Products, is_index: Callable[[Term], bool]) -> list[list[Term]]:
    """What the index is multiplied by in each product that has it."""
    return [
        [leaf for leaf in product if not is_index(leaf)]
        for product in products
        if any(map(is_index, product))
    ]


def _is_scattered(products: Products, kernel: TritonKernel) -> bool:
    """Whether every range of the address is multiplied by something large."""
    strides = _factors(products, is_range)
    return bool(strides) and all(any(_is_large(factor, kernel) for factor in stride) for stride in strides)


def _is_large(factor: Term, kernel: TritonKernel) -> bool:
    if factor.number is not None:
        return factor.number >= 8
    if factor.op != "name":
        return False
    recorded = kernel.numbers.get(str(factor.value[0]))
    if recorded is not None:
        return recorded >= 8
    if kernel.launch is None:
        return False
    passed = kernel.passed(str(factor.value[0]))
    if passed is None:
        return False
    source = kernel.launch[0]
    number = source.literal(passed)
    if isinstance(number, int):
        return number >= 8
    if isinstance(passed, cst.Call) and source.is_named(passed.func, "stride") and passed.args:
        return source.literal(passed.args[0].value) in (0, -2)  # of rows
    return isinstance(passed, (cst.Name, cst.Attribute, cst.Subscript, cst.Call))  # a size


def is_row(term: Term) -> bool:
    """Whether a term is ``tl.program_id``: the index of the block."""
    return term.op == "call" and str(term.value[0]).endswith("program_id")


def stride_of(access: Access, is_index: Callable[[Term], bool]) -> str | None:
    """The name that the index is multiplied by; "" for none, None when it is not as simple."""
    found = _factors(access.products, is_index)
    if len(found) != 1 or len(found[0]) > 1:
        return None
    if not found[0]:
        return ""
    return str(found[0][0].value[0]) if found[0][0].op == "name" else None


def pointer(access: Access, kernel: TritonKernel) -> str | None:
    """The parameter that is alone in the sum."""
    alone = [product[0] for product in access.products if len(product) == 1 and product[0].op == "name"]
    names = [str(term.value[0]) for term in alone if str(term.value[0]) in kernel.parameters]
    return names[0] if len(names) == 1 else None


def bound(access: Access, flow: Flow, source: Source) -> str | None:
    """What the range is compared with in the mask."""
    mask = source.argument(access.call, "mask", 1)
    term = flow.terms.get(mask.value) if mask is not None else None
    if term is None or term.op != "lt" or term.args[1].op != "name":
        return None
    return str(term.args[1].value[0])
