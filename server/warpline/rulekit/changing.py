"""Values of a call's arguments changed where they are written: in the call, a dict, a constant, an option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import libcst as cst

from warpline.model.report import Applicability, Fix
from warpline.rulekit.context import Context
from warpline.rulekit.holders import argument, beside, by_hand, holder, in_text_at, literal_at, switch_at
from warpline.rulekit.origins import Origin, mapping, overridden, unpacked_origin
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.run import Site


class Changes:
    """Edits of one fix, those of each file together.

    ``positions``: of parameters that may be passed by position; ``others``: more edits of the same fix.
    """

    def __init__(
        self, context: Context, positions: Mapping[str, int] | None = None, others: Iterable[Edits] = ()
    ) -> None:
        self.context = context
        self.positions = positions or {}
        self.edits = {other.source.path: other for other in others}
        self.last: tuple[Source, cst.BaseExpression] | None = None  # where the value before was written

    def of(self, source: Source) -> Edits:
        """The edits of a file, begun with the first one."""
        return self.edits.setdefault(source.path, Edits(source))

    def fix(self, title: str, applicability: Applicability) -> Fix:
        """All of them as one fix. Raises Refused."""
        first, *rest = self.edits.values()
        return first.fix(title, applicability, *rest)

    def recorded(self, site: Site, source: Source, call: cst.Call, name: str, code: str) -> None:
        """Change the value where the run recorded that it is written, else beside the previous change. Raises
        Refused."""
        found = argument(site, name)
        if self.held(site, name, code):
            return
        if found is not None and not found.passed and self.last is not None:
            where, node = self.last
            outer = beside(where, node)
            if outer is None and where.path == source.path and where.inside(node, call):
                outer = call
            if outer is not None:
                self.of(where).set_entry(outer, name, code)
            else:
                self.of(source).set_argument(call, name, self._guarded(source, call, name, code))
        elif found is not None and found.passed:
            raise Refused(f"the code that sets `{name}` was not found")
        else:
            self.absent(source, call, name, code)

    def held(self, site: Site, name: str, code: str) -> bool:
        """Change the value where the run recorded that it is written; False where it did not. Raises
        Refused."""
        found, held = argument(site, name), holder(site, name)
        if found is None or held is None:
            return False
        reason = by_hand(held, name)
        if reason:
            raise Refused(reason)
        switch = switch_at(self.context, held)
        if switch is not None:
            self.of(switch[0]).set_argument(switch[1], "default", code)
            return True
        if held.kind == "text":
            where, node, code = in_text_at(self.context, held, found.value, code)
        else:
            where, node = literal_at(self.context, held, found.value)
        self.of(where).replace(node, code)
        self.last = where, node
        return True

    def _guarded(self, source: Source, call: cst.Call, name: str, code: str) -> str:
        """``code``, where it may be passed whatever the number of workers is: others may set it to none."""
        if name != "persistent_workers":
            return code
        present = source.argument(call, "num_workers", self.positions.get("num_workers"))
        if present is None or not isinstance(present.value, (cst.Name, cst.Attribute, cst.Subscript)):
            raise Refused("the number of workers is not in that call")
        return f"{source.code(present.value)} > 0"

    def absent(self, source: Source, call: cst.Call, name: str, code: str) -> None:
        """The call does not pass ``name`` itself: change it in the unpacked arguments, else add it. Raises
        Refused."""
        unpacked = source.unpacked(call)
        for value in unpacked:
            found = unpacked_origin(self.context, source, value, name)
            if found is not None:
                self.at_origin(found, name, code)
                return
        if not unpacked:
            self.of(source).set_argument(call, name, code)
            return
        holder = mapping(self.context, source, unpacked[-1])
        if holder is None:
            raise Refused(f"`{name}` may be in the unpacked arguments")
        where, display = holder
        self.of(where).set_entry(display, name, code)

    def at_origin(self, origin: Origin, name: str, code: str) -> None:
        """The value is written elsewhere: change it there. Raises Refused."""
        if not origin.editable:
            raise Refused(f"`{name}` comes from {origin.words}, whose value was not found")
        word = overridden(self.context, origin)
        if word is not None:
            raise Refused(f"the command line passes `{word}`: change it there")
        self.of(origin.source).replace(origin.node, code)
