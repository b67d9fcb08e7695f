"""Short names of kernels: compilers' names can have thousands of characters.

``void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(…)`` becomes
``vectorized_elementwise_kernel<CUDAFunctor_add<float>>``. The JSON report keeps the full names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

#: Longer names are cut; about what a table's column holds.
MOST = 72

#: Template arguments that say how and not what: sizes, tensor lists, index arithmetic.
_HOW = re.compile(
    r"array|.*(Metadata|Calculator|WithoutCast|WithCast|OpaqueType|TensorInfo|Params?)|Array|unsigned|\W*\d.*"
    r"|true|false|const|integral_constant|Load|Store|IndexToOffset"
)
#: Templates that say nothing themselves: what they wrap is the operation.
_WRAPS = re.compile(r"gpu_kernel_impl\w*|[AB]?UnaryFunctor|BinaryFunctor|func_wrapper_t|ReduceOp|policy_hub")
#: Types of numbers: said only where nothing else tells one instance of a kernel from another.
_NUMBERS = {
    "float", "double", "int", "long", "char", "bool", "short", "half", "Half", "BFloat16", "__half",
    "__nv_bfloat16", "complex",
}  # fmt: skip
#: cuBLAS's and cuDNN's: the problem and the tile, then the method, then the library.
_VENDOR = re.compile(r"(sm\d+_\w*?)(_tilesize\d+(?:x\d+)*)_\w*?(_cublas|_cudnn)?")
#: One token of an Itanium-mangled name: a part with its length, template brackets, substitutions.
_MANGLED = re.compile(r"(\d+)|(I)|(E)|S[0-9A-Z]*_|L\w(?:n?\d+)E|[A-Za-z]")
#: Deeper templates than this are not read: their insides are never shown.
_DEEPEST = 12
_LAMBDA = re.compile(r"\{[^{}]*\}|\(anonymous namespace\)")


#: cuDNN's: a tensor laid out channels first is turned to channels last for the tensor cores, or back.
_TURNS_LAYOUT = ("nchwToNhwc", "nhwcToNchw")


def turns_layout(kernel: str) -> bool:
    """Whether a kernel converts a tensor between NCHW and NHWC, by its name."""
    return any(word in kernel for word in _TURNS_LAYOUT)


@dataclass
class _Name:
    """A name and its template's arguments; ``word`` is the last part of the path before ``<``."""

    word: str
    within: list[_Name] = field(default_factory=list)


@lru_cache(maxsize=4096)
def readable(kernel: str) -> str:
    """A short name of ``kernel`` for people, at most :data:`MOST` characters and never empty for a name."""
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
    # The first that tells something is the operation; the rest are its types once more.
    return f"{name.word}<{telling[0]}>" if telling and depth < 3 else name.word


def _argument(name: _Name, depth: int) -> str:
    if _WRAPS.fullmatch(name.word):
        inside = [part for each in name.within if (part := _argument(each, depth))]
        return next((part for part in inside if part not in _NUMBERS), "")
    return "" if _HOW.fullmatch(name.word) else _written(name, depth)


def _demangled(kernel: str) -> _Name:
    """Read ``void a::b<c<4>, d>(e, f)``: the path's last word, and what is between its brackets."""
    text = _LAMBDA.sub("", kernel.replace("operator()() const", "").replace("operator()", ""))
    return _read(text.strip(), 0, 0)[0]


def _read(text: str, at: int, depth: int) -> tuple[_Name, int]:
    """The name that begins at ``at``, up to a comma or a closing bracket of the level above."""
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
            # Parameters: what follows them (`::{lambda}`) is inside the function and says less.
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
    """Behind the parenthesis that closes the one at ``at``."""
    depth = 0
    for here in range(at, len(text)):
        depth += (text[here] == "(") - (text[here] == ")")
        if depth == 0:
            return here + 1
    return len(text)


def _mangled(kernel: str) -> _Name:
    """Enough of the Itanium ABI for people: the parts of the outer name, and of its first argument."""
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
