"""Batches that a loader does not pin: objects of a class of the user's, and the method that they lack."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_BY_HAND = "give `{name}` a method `pin_memory` that pins its tensors and returns the object"


@dataclass(frozen=True, slots=True)
class Unpinned:
    """``tensors``: attributes that hold a tensor of the host in every batch, and can be assigned."""

    source: Source
    owner: cst.ClassDef
    tensors: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.owner.name.value

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of ``class``, below its decorators."""
        return self.source.path, self.source.line(self.owner.name)


def unpinned(context: Context, site: Site) -> Unpinned | None:
    """The class of the loader's batches, where torch finds no way to pin them; None where it does, where the
    run does not say, and where the class has the method by now."""
    loader = facts_of(Loader, site)
    if loader.batch_file is None or loader.batch_type is None:
        return None
    source = context.source(loader.batch_file)
    name = loader.batch_type.rpartition(".")[2]
    found = [one for one in source.nodes(cst.ClassDef) if one.name.value == name]
    if len(found) != 1 or "def pin_memory" in source.code(found[0]):
        return None
    return Unpinned(source, found[0], tuple(loader.batch_tensors or ()))


def pins_itself(kept: Unpinned, edits: Edits) -> None:
    """The method, at the end of the class. Raises Refused."""
    body = kept.owner.body.body
    last = body[-1] if body and isinstance(kept.owner.body, cst.IndentedBlock) else None
    if not kept.tensors or not isinstance(last, Statement):
        raise Refused(_BY_HAND.format(name=kept.name))
    lines = [f"    self.{name} = self.{name}.pin_memory()" for name in kept.tensors]
    edits.insert_after(last, "\n".join(["def pin_memory(self):", *lines, "    return self"]), apart=True)
