"""Short names of kernels. A compiler's name may have thousands of characters.

``void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(…)`` becomes
``vectorized_elementwise_kernel<CUDAFunctor_add<float>>``. The JSON report keeps the full names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

#: Longer names are cut: about the width of a table's column, in characters.
MOST = 72

#: Template arguments that do not name the operation: sizes, tensor lists, index arithmetic.
_HOW = re.compile(
    r"array|.*(Metadata|Calculator|WithoutCast|WithCast|OpaqueType|TensorInfo|Params?)|Array|unsigned|\W*\d.*"
    r"|true|false|const|integral_constant|Load|Store|IndexToOffset"
)
#: Wrapper templates: their argument is the operation.
_WRAPS = re.compile(r"gpu_kernel_impl\w*|[AB]?UnaryFunctor|BinaryFunctor|func_wrapper_t|ReduceOp|policy_hub")
#: Number types: shown only if nothing else distinguishes two instances of a kernel.
_NUMBERS = {
    "float", "double", "int", "long", "char", "bool", "short", "half", "Half", "BFloat16", "__half",
    "__nv_bfloat16", "complex",
}  # fmt: skip
#: Kernels of cuBLAS and cuDNN: the problem and the tile, then the method, then the library.
_VENDOR = re.compile(r"(sm\d+_\w*?)(_tilesize\d+(?:x\d+)*)_\w*?(_cublas|_cudnn)?")
#: One token of an Itanium-mangled name: a part with its length, template brackets, substitutions.
_MANGLED = re.compile(r"(\d+)|(I)|(E)|S[0-9A-Z]*_|L\w(?:n?\d+)E|[A-Za-z]")
#: Templates nested deeper than this are not parsed, since they are never shown.
_DEEPEST = 12
_LAMBDA = re.compile(r"\{[^{}]*\}|\(anonymous namespace\)")


#: cuDNN's kernels that convert a tensor from NCHW to NHWC for the tensor cores, or back.
_TURNS_LAYOUT = ("nchwToNhwc", "nhwcToNchw")


def turns_layout(kernel: str) -> bool:
    """Whether the kernel's name says that it converts a tensor between NCHW and NHWC."""
    return any(word in kernel for word in _TURNS_LAYOUT)


@dataclass
class _Name:
    """A name and its template arguments; ``word`` is the last part of the qualified name, before ``<``."""

    word: str
    within: list[_Name] = field(default_factory=list)


@lru_cache(maxsize=4096)
def readable(kernel: str) -> str:
    """A short name of ``kernel`` for people: at most :data:`MOST` characters, and not empty unless ``kernel``
    is."""
    if vendor := _VENDOR.fullmatch(kernel.strip()):
        whole, short = (f"{head}…{vendor[3] or ''}" for head in (vendor[1] + vendor[2], vendor[1]))
        return whole if len(whole) <= MOST else _cut(short)
    name = _mangled(kernel) if kernel.startswith("_Z") else _demangled(kernel)
    return _cut(_written(name) or kernel.strip())


def _cut(name: str) -> str:
    return name if len(name) <= MOST else name[: MOST - 1] + "…"


def _written(name: _Name, depth: int = 0) -> str:
    kept = [part for each in name.within if (part := _argument(each, depth + 1))]
    telling = [part for part in kept if part not in _NUMBERS] or kept
    # The first argument that is kept is the operation; the others repeat its types.
    return f"{name.word}<{telling[0]}>" if telling and depth < 3 else name.word


def _argument(name: _Name, depth: int) -> str:
    if _WRAPS.fullmatch(name.word):
        inside = [part for each in name.within if (part := _argument(each, depth))]
        return next((part for part in inside if part not in _NUMBERS), "")
    return "" if _HOW.fullmatch(name.word) else _written(name, depth)


def _demangled(kernel: str) -> _Name:
    """Parse ``void a::b<c<4>, d>(e, f)``: the last word of the qualified name, and the template arguments."""
    text = _LAMBDA.sub("", kernel.replace("operator()() const", "").replace("operator()", ""))
    return _read(text.strip(), 0, 0)[0]


def _read(text: str, at: int, depth: int) -> tuple[_Name, int]:
    """The name that begins at ``at``, up to a comma or closing bracket of the enclosing level."""
    name, word, whole = _Name(""), "", False
    while at < len(text):
        char = text[at]
        if char in ",>":
            break
        if char == "<":
            if word and not name.word:
                name.word = word
            at = at + 1 if depth < _DEEPEST else len(text)
            while at < len(text) and text[at - 1] != ">":
                inside, at = _read(text, at, depth + 1)
                name.within.append(inside)
                at += 1
        elif char == "(":
            # Function parameters: a name after them (`::{lambda}`) is inside the function and is ignored.
            name.word, whole = name.word or word, True
            at = _closing(text, at)
        else:
            if char == ":" and not whole:
                word = ""
                if not name.within:
                    name.word = ""
            elif char == " " and not whole:
                word = word if text[at + 1 : at + 2] in ("", ",", ">", "*", "&") else ""
            elif char.isalnum() or char == "_":
                word += char
            at += 1
    name.word = name.word or word
    return name, at


def _closing(text: str, at: int) -> int:
    """The index after the parenthesis that closes the one at ``at``."""
    depth = 0
    for here in range(at, len(text)):
        depth += (text[here] == "(") - (text[here] == ")")
        if depth == 0:
            return here + 1
    return len(text)


def _mangled(kernel: str) -> _Name:
    """Parse a part of an Itanium-mangled name: the outer name, and its first template argument."""
    at, words, opened = 2, [[""]], 0
    while at < len(kernel) and opened < 3:
        token = _MANGLED.match(kernel, at)
        if token is None:
            break
        at = token.end()
        if token[1]:
            words[opened] = [kernel[at : at + int(token[1])]]
            at += int(token[1])
        elif token[2]:
            opened += 1
            words.append([""])
        elif token[3] and opened:
            break
    name = _Name("")
    for (word,) in reversed([part for part in words if part[0]]):
        name = _Name(word, [name] if name.word else [])
    return name
