"""All kinds of replacements by name."""

from __future__ import annotations

from typing import Callable, Dict

from ....wire.probing import Question
from . import (
    activations,
    attention,
    compiled,
    embeddings,
    joins,
    layouts,
    lists,
    loops,
    losses,
    norms,
    optimizers,
    products,
    recurrent,
    sorts,
    windows,
)
from .pair import Pair

__all__ = ["KINDS", "Pair"]

KINDS: Dict[str, Callable[[Question, str], Pair]] = {
    **activations.KINDS,
    **attention.KINDS,
    **compiled.KINDS,
    **embeddings.KINDS,
    **joins.KINDS,
    **layouts.KINDS,
    **lists.KINDS,
    **loops.KINDS,
    **losses.KINDS,
    **norms.KINDS,
    **optimizers.KINDS,
    **products.KINDS,
    **recurrent.KINDS,
    **sorts.KINDS,
    **windows.KINDS,
}
