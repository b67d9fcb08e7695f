"""Calls of torch as terms: functions and methods to the same form.

Every entry takes ``(terms, args, keywords)`` with the tensor first, as the function form has it,
and returns None when it does not know the arguments (the call then is opaque).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpline.rulekit.terms.term import Term, Terms

Call = Callable[[Terms, Sequence[Term], Mapping[str, Term]], "Term | None"]

_ONE = "exp log log1p expm1 tanh erf erfc sigmoid relu abs sin cos relu6 softplus"
_TWO = {
    "add": Terms.add, "sub": Terms.sub, "subtract": Terms.sub, "mul": Terms.mul, "multiply": Terms.mul,
    "div": Terms.div, "divide": Terms.div, "true_divide": Terms.div, "pow": Terms.pow,
}  # fmt: skip
_COMPARE = ["eq", "ne", "lt", "gt", "le", "ge"]


def _reduction(op: str) -> Call:
    def call(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
        given = Arguments("input dim keepdim dtype axis", args, keywords)
        keep = static(given.get("keepdim"))
        if not given.ok or given.get("dtype") or keep is ...:
            return None
        of, over = given["input"], dims(given.get("dim", "axis"))
        if op == "mean" and of.op == "mean" and (both := _one_after_other(of.value, over)):
            of, over = of.args[0], both
        return terms.make(op, of, value=(over, bool(keep)))

    return call


def _one_after_other(
    before: tuple[tuple[int, ...] | None, bool], after: tuple[int, ...] | None
) -> tuple[int, ...]:
    """The dimensions of two means, the second of what the first kept; empty if some may be the same ones."""
    first, keep = before
    if not first or not after or not keep or {*first} & {*after}:
        return ()
    alike = len({dim < 0 for dim in (*first, *after)}) == 1
    return tuple(sorted((*first, *after))) if alike else ()


def _variance(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``var(x)`` with value (dims, keepdim, correction)."""
    if len(args) > 1 and isinstance(args[1].value, bool):  # var(x, False)
        given = Arguments("input unbiased", args, keywords)
    else:
        given = Arguments("input dim unbiased keepdim correction", args, keywords)
    keep, unbiased = static(given.get("keepdim")), static(given.get("unbiased"))
    correction = static(given.get("correction"))
    if not given.ok or ... in (keep, unbiased, correction):
        return None
    if correction is None:
        correction = 0 if unbiased is False else 1
    if not isinstance(correction, int | float):
        return None
    return terms.make("var", given["input"], value=(dims(given.get("dim")), bool(keep), int(correction)))


def _unsqueeze(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``x.mean(-1).unsqueeze(-1)`` is ``x.mean(-1, keepdim=True)``."""
    inner, dim = args[0], static(Arguments("input dim", args, keywords)["dim"])
    if (
        inner.op in ("mean", "sum", "var")
        and isinstance(inner.value, tuple)
        and inner.value[:2] == ((dim,), False)
    ):
        return terms.make(inner.op, *inner.args, value=(inner.value[0], True, *inner.value[2:]))
    if inner.op == "sqrt" and inner.args[0].op == "var":
        variance = _unsqueeze(terms, [inner.args[0], *args[1:]], keywords)
        return variance and terms.sqrt(variance)
    return terms.make("unsqueeze", inner, value=dim) if isinstance(dim, int) else None


def _with_mean(first: Call) -> Call:
    """``torch.var_mean``: a pair."""

    def call(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
        spread = first(terms, args, keywords)
        if spread is None:
            return None
        variance = spread.args[0] if spread.op == "sqrt" else spread
        return terms.make("tuple", spread, terms.make("mean", variance.args[0], value=variance.value[:2]))

    return call


def _deviation(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    variance = _variance(terms, args, keywords)
    return variance and terms.sqrt(variance)


def _softmax(op: str) -> Call:
    def call(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
        given = Arguments("input dim _stacklevel dtype", args, keywords)
        dim = static(given.get("dim"))
        if not isinstance(dim, int) or not given.ok:
            return None
        result = terms.make(op, given["input"], value=dim)
        return terms.make("cast", result) if given.get("dtype") else result

    return call


def _transpose(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    given = Arguments("input dim0 dim1", args, keywords)
    pair = static(given.get("dim0")), static(given.get("dim1"))
    if not all(isinstance(dim, int) for dim in pair):
        return None
    return terms.make("transpose", given["input"], value=tuple(sorted(pair)))


def _permute(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    order = static(args[1]) if len(args) == 2 else tuple(static(arg) for arg in args[1:])
    if keywords or not isinstance(order, tuple) or not all(isinstance(dim, int) for dim in order):
        return None
    size = len(order)
    order = tuple(dim % size for dim in order)
    if size >= 2 and order == (*range(size - 2), size - 1, size - 2):
        return terms.make("transpose", args[0], value=(-2, -1))
    return terms.make("permute", args[0], value=order)


def _einsum(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``bhqd,bhkd->bhqk`` and the like as a matmul of the last two dimensions, of permuted tensors where the
    letters stand in another order; the result is ``moved`` to its own order."""
    rule = static(args[0]) if args else None
    if len(args) == 2 and args[1].op == "tuple":  # tensors may come as a list
        args = [args[0], *args[1].args]
    if not isinstance(rule, str) or len(args) != 3 or keywords or "->" not in rule or "..." in rule:
        return None
    given, out = rule.replace(" ", "").split("->")
    left, right = given.split(",")
    batch = "".join(letter for letter in out if letter in left and letter in right)
    rows, columns = ([one for one in out if (one in left, one in right) == side] for side in _SIDES)
    inner = [letter for letter in left if letter in right and letter not in out]
    if not len(inner) == len(rows) == len(columns) == 1:
        return None
    sides = [(args[1], left, rows[0]), (args[2], right, columns[0])]
    if out.index(columns[0]) < out.index(rows[0]):
        sides.reverse()
    (first, of_first, row), (second, of_second, column) = sides
    a = _arranged(terms, first, of_first, batch + row + inner[0])
    b = _arranged(terms, second, of_second, batch + inner[0] + column)
    if a is None or b is None:
        return None
    product = terms.make("matmul", a, b)
    order = tuple((batch + row + column).index(letter) for letter in out)
    return product if order == (*range(len(out)),) else terms.make("moved", product, value=order)


#: Whether the left and the right side have the letter of the rows, and that of the columns.
_SIDES = ((True, False), (False, True))


def _arranged(terms: Terms, term: Term, have: str, want: str) -> Term | None:
    if sorted(have) != sorted(want):
        return None
    if have == want:
        return term
    order = tuple(have.index(letter) for letter in want)
    if have[-1] == want[-2] and order[:-2] != (*range(len(have) - 2),):  # the last dimension stays the last
        inner = _arranged(terms, term, have, want[:-2] + want[-1] + want[-2])
        return inner and terms.make("transpose", inner, value=(-2, -1))
    return _permute(terms, [term, terms.const(order)], {})


def _baddbmm(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``beta * input + alpha * (batch1 @ batch2)``."""
    given = Arguments("input batch1 batch2 beta alpha", args, keywords)
    if not given.ok:
        return None
    bias, product = given["input"], terms.make("matmul", given["batch1"], given["batch2"])
    beta, alpha = given.get("beta"), given.get("alpha")
    return terms.add(
        terms.mul(bias, beta) if beta is not None else bias,
        terms.mul(product, alpha) if alpha is not None else product,
    )


def _masked_fill(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    given = Arguments("input mask value", args, keywords)
    return (
        terms.make("masked_fill", given["input"], given["mask"], given["value"])
        if len(given.by_name) == 3
        else None
    )


def _one_hot(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``one_hot(classes)``, with the number of classes where it is given."""
    given = Arguments("input num_classes", args, keywords)
    number = given.get("num_classes")
    return terms.make("one_hot", given["input"], *([number] if number else ())) if given.ok else None


def _scatter(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """A number at the class of each row, among others that are all alike: of one-hot rows."""
    value = "src" if "src" in keywords else "value"
    given = Arguments(f"input dim index {value}", args, keywords)
    whole, dim, column = given["input"], static(given["dim"]), column_of(given["index"])
    if not given.ok or dim not in (1, -1) or column is None or given[value].op == "call":
        return None
    rest, classes = terms.const(0), terms.make("size", whole.args[0], value=dim) if whole.args else None
    if whole.op == "full_like" and len(whole.args) == 2:
        rest = whole.args[1]
    elif whole.op == "zeros":
        sizes = sizes_of(whole)
        classes = sizes[1] if len(sizes) == 2 else None
    elif whole.op != "zeros_like":
        return None
    if classes is None:
        return None
    hot = terms.make("one_hot", column, classes)
    chosen = hot if given[value].number == 1 else terms.mul(hot, given[value])
    return chosen if rest.number == 0 else terms.add(chosen, terms.mul(terms.sub(terms.const(1), hot), rest))


def _fill(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """``zeros_like(x).fill_(number)`` is ``full_like(x, number)``."""
    if len(args) != 2 or keywords:
        return None
    like = args[0].args[0] if args[0].op in ("zeros_like", "ones_like", "full_like") else args[0]
    return terms.make("full_like", like, args[1])


def sizes_of(filled: Term) -> Sequence[Term]:
    """The sizes of ``zeros(2, 3)`` or ``zeros((2, 3))``; of ``zeros_like(x)`` what it is like."""
    given = filled.args[: len(filled.args) - len(filled.value or ())]
    return given[0].args if len(given) == 1 and given[0].op == "tuple" else given


def column_of(term: Term) -> Term | None:
    """``y`` of ``y.unsqueeze(1)``, ``y[:, None]`` and ``y.view(-1, 1)``."""
    if term.op == "unsqueeze" and term.value in (1, -1):
        return term.args[0]
    if (
        term.op == "index"
        and len(term.args) == 3
        and term.args[2].op == "const"
        and term.args[2].value is None
    ):
        return term.args[0]
    if term.op in ("view", "reshape") and [arg.number for arg in term.args[1:]] == [-1, 1]:
        return term.args[0]
    return None


def _dropout(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    given = Arguments("input p training inplace", args, keywords)
    p, training = given.get("p") or terms.const(0.5), given.get("training") or terms.const(True)
    return terms.make("dropout", given["input"], p, training)


def _cast(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    return terms.make("cast", args[0])


def _whole(kind: str) -> Call:
    """What makes flags or whole numbers, which need not be what they are made of."""
    return lambda terms, args, keywords: terms.make("whole", args[0], value=kind) if len(args) == 1 else None


def _to(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """Only a change of type, as each ``to`` of Triton's is; ``.to(device)`` stays opaque."""
    kind = args[1] if len(args) == 2 and not keywords else keywords.get("dtype") if len(args) == 1 else None
    if kind is None:
        return None
    if kind.op == "global" and kind.value in BOOLS:
        return terms.make("whole", args[0], value="bool")
    named = kind.op == "global" and (str(kind.value) in _FLOATS or str(kind.value).startswith(_TRITON))
    if named or (kind.op == "attr" and kind.value == "dtype"):
        return terms.make("cast", args[0])
    return None


_FLOATS = {"torch.float32", "torch.float", "torch.float16", "torch.half", "torch.bfloat16"}
_TRITON = "triton.language."
#: Names of the type of flags.
BOOLS = ("torch.bool", "bool")


def _size(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    if len(args) == 1 and not keywords:
        return terms.make("attr", args[0], value="shape")
    if len(args) == 2 and not keywords:
        return terms.make(
            "size", args[0], value=static(args[1]) if isinstance(static(args[1]), int) else None
        )
    return None


def _triu_indices(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
    """Indices of an upper triangle (rows and columns), of this size and offset."""
    given = Arguments("row col offset dtype device layout", args, keywords)
    if not given.ok or not {"row", "col"} <= given.by_name.keys():
        return None
    return terms.make("triu_indices", given["row"], given["col"], given.get("offset") or terms.const(0))


def _of(op: str, count: int) -> Call:
    """A call with that many arguments, none by name."""
    return lambda terms, args, keywords: (
        terms.make(op, *args) if len(args) == count and not keywords else None
    )


def _two(make: Callable[[Terms, Term, Term], Term]) -> Call:
    return lambda terms, args, keywords: (
        make(terms, args[0], args[1]) if len(args) == 2 and not keywords else None
    )


def _general(op: str, names: str, needed: int) -> Call:
    """A call kept by the names of its arguments; constants only beyond the first ``needed``."""

    def call(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
        given = Arguments(names, args, keywords)
        first = names.split()[:needed]
        rest = {key: static(value) for key, value in given.by_name.items() if key not in first}
        if not given.ok or any(name not in given.by_name for name in first) or ... in rest.values():
            return None
        return terms.make(op, *(given[name] for name in first), value=tuple(sorted(rest.items(), key=str)))

    return call


#: By the last part of the name: ``torch.mean``, ``torch.nn.functional.softmax`` and ``x.mean`` alike.
CALLS: dict[str, Call] = {
    **{name: _of(name, 1) for name in _ONE.split()},
    **{name: _two(make) for name, make in _TWO.items()},
    **{name: _of(name, 2) for name in (*_COMPARE, "maximum", "minimum")},
    "sqrt": lambda terms, args, keywords: terms.sqrt(args[0]) if len(args) == 1 else None,
    "rsqrt": _of("rsqrt", 1),
    "square": lambda terms, args, keywords: terms.pow(args[0], terms.const(2)),
    "reciprocal": lambda terms, args, keywords: terms.div(terms.const(1), args[0]),
    "neg": lambda terms, args, keywords: terms.neg(args[0]),
    "logical_not": _of("not", 1),
    "mean": _reduction("mean"), "sum": _reduction("sum"), "amax": _reduction("amax"),
    "max": _reduction("max_along"), "logsumexp": _reduction("logsumexp"),
    "var": _variance, "std": _deviation,
    "var_mean": _with_mean(_variance), "std_mean": _with_mean(_deviation),
    "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"),
    "transpose": _transpose, "swapaxes": _transpose, "permute": _permute,
    "matmul": _of("matmul", 2), "bmm": _of("matmul", 2), "einsum": _einsum, "baddbmm": _baddbmm,
    "masked_fill": _masked_fill, "where": _of("where", 3), "dropout": _dropout,
    "float": _cast, "half": _cast, "bfloat16": _cast, "type_as": _cast, "to": _to, "type": _to,
    **{name: _whole(name) for name in ("bool", "int", "long", "byte")},
    "detach": _of("detach", 1),
    "contiguous": lambda terms, args, keywords: args[0],
    "size": _size,
    "tril": _general("tril", "input diagonal", 1), "triu": _general("triu", "input diagonal", 1),
    "triu_indices": _triu_indices,
    "clamp": _general("clamp", "input min max", 1), "clamp_min": _general("clamp", "input min", 1),
    "gather": _general("gather", "input dim index", 3),
    "unsqueeze": _unsqueeze, "squeeze": _general("squeeze", "input dim", 1),
    "nll_loss": _general("nll_loss", "input target", 2),
    "binary_cross_entropy": _general("binary_cross_entropy", "input target", 2),
    "one_hot": _one_hot, "scatter": _scatter, "masked_select": _of("index", 2),
    "fill": _fill,
}  # fmt: skip

_IN_PLACE = "add sub mul div masked_fill neg sqrt exp scatter fill tril triu"
#: Methods that change the tensor and return it.
IN_PLACE = {f"{name}_": name for name in _IN_PLACE.split()}


def _plain(op: str) -> Call:
    """A call without effects that is kept as it is written."""

    def call(terms: Terms, args: Sequence[Term], keywords: Mapping[str, Term]) -> Term | None:
        return terms.make(op, *args, *keywords.values(), value=tuple(keywords))

    return call


_WITHOUT_EFFECT = """
ones zeros ones_like zeros_like full full_like arange finfo view reshape expand expand_as flatten
"""
CALLS.update({name: _plain(name) for name in _WITHOUT_EFFECT.split()})


class Arguments:
    """Positional and keyword arguments by the names of a signature."""

    def __init__(self, names: str, args: Sequence[Term], keywords: Mapping[str, Term]) -> None:
        order = names.split()
        self.ok = len(args) <= len(order) and all(key in order for key in keywords)
        self.by_name = {**dict(zip(order, args, strict=False)), **keywords}

    def __getitem__(self, name: str) -> Term:
        return self.by_name[name]

    def get(self, *names: str) -> Term | None:
        """The first of these arguments that the call has, by any of its names; else None."""
        return next((self.by_name[name] for name in names if name in self.by_name), None)


def static(term: Term | None) -> Any:
    """The Python value of a constant or a tuple of constants; Ellipsis when there is none."""
    if term is None:
        return None
    if term.op == "const":
        return term.value
    if term.op == "tuple":
        values = tuple(static(arg) for arg in term.args)
        return ... if ... in values else values
    return ...


def dims(term: Term | None) -> tuple[int, ...] | None:
    """``-1`` and ``(-1,)`` -> ``(-1,)``; None for all dimensions. Raises ValueError when not constant."""
    value = static(term)
    if value is None:
        return None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return value
    raise ValueError("not constant")
