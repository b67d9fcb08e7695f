"""Embeddings with dense gradients although a step reads only a few of their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from warpline.model import costs
from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.holders import argument
from warpline.rulekit.kernels import is_product
from warpline.wire.run import Site
from warpline.wire.sites import Module, Optimizer, facts_of

#: Share of the rows up to which a sparse gradient was seen to gain with every optimizer that was tried; at a
#: quarter of the rows it was 1.0 to 1.7 times (the page of ``dense-embedding-gradient`` has the rest), which
#: a trial has to tell.
MOST_READ, _MOST_TRIED = costs.bound("rows-read"), costs.bound("rows-tried")
#: Classes of torch's.
EMBEDDINGS = ("Embedding", "EmbeddingBag")
#: The operator of look-ups that can be tried.
TRIED = "aten::embedding"
#: By the operator that looks rows up, the one that adds to the gradient's rows, and which of its inputs has
#: them. A table that is indexed (``table[ids]``) has a dense gradient like an embedding's.
_READS = {
    "aten::embedding": ("aten::embedding_dense_backward", 0),
    "aten::_embedding_bag": ("aten::_embedding_bag_dense_backward", 0),
    "aten::index": ("aten::_index_put_impl_", 2),
    "aten::index_select": ("aten::index_add_", 3),
}


@dataclass(frozen=True, slots=True)
class Table:
    """``filled``: share of the line's time in which the gradient's rows are filled. ``by``: the operator that
    looks rows up."""

    cost: LineCost
    rows: int
    columns: int
    read: float  # rows a step, those read twice counted twice
    filled: float
    by: str
    calls: float = 1.0  # look-ups a step

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def most(self) -> float:
        """The most rows that a step may read: more where the look-up can be tried."""
        return (_MOST_TRIED if self.by == TRIED else MOST_READ) * self.rows


def tables(context: Context) -> Iterator[Table]:
    """Look-ups in embedding tables whose dense gradient a step fills. A table that a matrix product uses as
    well, as tied output weights, is left out."""
    for cost in context.profile.lines:
        for op in cost.ops:
            dense, at = _READS.get(op.name, ("", 0))
            if not dense or op.phase != "forward" or len(op.shapes) < 2 or len(op.shapes[0]) != 2:
                continue
            rows, columns = op.shapes[0]
            adding = [other for other in cost.ops if other.name == dense and other.phase == "backward"]
            if at:
                adding = [
                    other for other in adding if other.shapes[:1] == op.shapes[:1] and len(other.shapes) > at
                ]
            if not adding:
                continue
            read = op.count * math.prod(op.shapes[1])
            if at:
                read = sum(other.count * math.prod(other.shapes[at]) for other in adding) / columns
            if _used_otherwise(context, rows, columns):
                continue
            filling = sum(
                other.device_ms
                for other in cost.ops
                if (other.phase == "backward" and other.shapes and other.shapes[0] == (rows, columns))
                or other in adding
            )
            yield Table(cost, rows, columns, read, share_of(filling, cost), op.name, op.count)


def holds_table(site: Site) -> bool:
    """Whether the module made there is one of torch's embeddings, or another table that takes ``sparse``."""
    made = facts_of(Module, site)
    return made.num_embeddings is not None and (
        made.type in EMBEDDINGS or argument(site, "sparse") is not None
    )


def looked_up_in(table: Table, site: Site) -> bool:
    """Whether the module made there has such a table, and leaves the look-up to torch's ``forward``."""
    made = facts_of(Module, site)
    own = table.cost.function == f"{class_name(made)}.forward"
    return holds_table(site) and (made.num_embeddings, made.embedding_dim) == table.shape and not own


def class_name(made: Module | Optimizer) -> str:
    """The name of its class, without the module that has it."""
    return (made.type or "").rpartition(".")[2]


def _used_otherwise(context: Context, rows: int, columns: int) -> bool:
    """Whether a matrix product has a factor of the table's size, as with tied output weights."""
    sizes = {(rows, columns), (columns, rows)}
    return any(
        is_product(op.name) and sizes.intersection(op.shapes)
        for cost in context.profile.lines
        for op in cost.ops
    )


def share_of(milliseconds: float, cost: LineCost) -> float:
    """The share of a line's device time, 0 to 1. 0 where the line has none."""
    return min(1.0, milliseconds / cost.device_ms) if cost.device_ms > 0 else 0.0
