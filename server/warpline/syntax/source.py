"""One user file, parsed: which node is on a line, what a name means, where a block ends.

Lines are 1-based and columns 0-based in code points, as in :class:`warpline.model.report.Edit`.
"""

from __future__ import annotations

import ast
import gc
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, TypeGuard, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from warpline.syntax.imports import imported_names
from warpline.text.lines import lines_of

Position = tuple[int, int]
Span = tuple[Position, Position]
_Types = tuple[type[cst.CSTNode], ...]
Node = TypeVar("Node", bound=cst.CSTNode)
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_COMPOUND = (
    cst.For,
    cst.While,
    cst.If,
    cst.With,
    cst.FunctionDef,
    cst.ClassDef,
    cst.Try,
    cst.TryStar,
    cst.Match,
)
#: Expressions that a dot may follow as they are.
DOTTED = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
#: Calls that give a loop as many turns as what they are given, one element each.
SAME_TURNS = ("iter", "list", "tuple", "reversed", "tqdm", "track")
_STATEMENT = (cst.SimpleStatementLine, cst.BaseCompoundStatement)

_BLANK = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline)


#: Nodes with fields that are not in the order of the text.
_IN_TEXT: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Arg: ("keyword", "value"),
}


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    first = _IN_TEXT.get(kind, ())
    return (*first, *(field.name for field in fields(kind) if field.name not in first))


@cache
def is_kind(kind: type, kinds: tuple[type[cst.CSTNode], ...]) -> bool:
    """Whether nodes of a type are of one of ``kinds``. LibCST's types are abstract base classes, and asking
    each node with ``isinstance`` takes most of the time of a walk over a tree."""
    return issubclass(kind, kinds)


class _Shown(dict[type, bool]):
    """Whether objects of a type are nodes other than white space and comments."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = issubclass(kind, cst.CSTNode) and not issubclass(kind, _BLANK)
        return found


_SHOWN = _Shown()


def is_method(node: cst.CSTNode | None, *names: str) -> TypeGuard[cst.Call]:
    """Whether ``node`` is a call of a method with one of ``names``."""
    called = node.func if isinstance(node, cst.Call) else None
    return isinstance(called, cst.Attribute) and called.attr.value in names


def receiver(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """What a method is called on: ``x`` of ``x.item()``. None of what is no such call."""
    called = node.func if isinstance(node, cst.Call) else None
    return called.value if isinstance(called, cst.Attribute) else None


def short_name(node: cst.CSTNode | None) -> str:
    """The last name of ``self.optimizer``; "" of what is no name."""
    last = node.attr if isinstance(node, cst.Attribute) else node
    return last.value if isinstance(last, cst.Name) else ""


def called_name(call: cst.Call) -> str:
    """The last name of what is called: ``step`` of ``self.optimizer.step()``; "" for ``makers[0]()``."""
    return short_name(call.func)


def methods(owner: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    """The methods that a class defines itself, by name."""
    return {one.name.value: one for one in owner.body.body if isinstance(one, cst.FunctionDef)}


def parameters(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """The parameters with a name of their own, in order: all but ``*args`` and ``**kwargs``."""
    return (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)


def only_target(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """What an assignment gives its value; None for one of several, and for what is no assignment."""
    return node.targets[0].target if isinstance(node, cst.Assign) and len(node.targets) == 1 else None


def taken(
    target: cst.BaseExpression, over: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The parts of a loop's target with what each is an element of, also in ``enumerate`` and ``zip``; not
    the number of a turn."""
    parts = [one.value for one in target.elements] if isinstance(target, cst.Tuple) else []
    args = [arg.value for arg in over.args if arg.keyword is None] if isinstance(over, cst.Call) else []
    name = called_name(over) if isinstance(over, cst.Call) and args else ""
    if name in SAME_TURNS:
        yield from taken(target, args[0])
    elif name == "enumerate" and len(parts) == 2:
        yield from taken(parts[1], args[0])
    elif name == "zip" and len(parts) == len(args):
        for part, arg in zip(parts, args, strict=True):
            yield from taken(part, arg)
    else:
        yield target, over


def appended(node: cst.CSTNode | None) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The list and the value of ``pieces.append(value)``, a call or the statement that it is."""
    call = node.value if isinstance(node, cst.Expr) else node
    if not isinstance(call, cst.Call) or not is_method(call, "append") or len(call.args) != 1:
        return None
    return cst.ensure_type(call.func, cst.Attribute).value, call.args[0].value


def is_whole(part: cst.BaseSlice) -> bool:
    """Whether it is ``:`` or ``...``, which takes all of a dimension."""
    if isinstance(part, cst.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)


def plain_lines(body: cst.BaseSuite) -> list[cst.BaseSmallStatement] | None:
    """The statements of a block, if each is a plain one on a line of its own."""
    lines = body.body if isinstance(body, cst.IndentedBlock) else ()
    found = [small for one in lines if (small := alone(one)) is not None]
    return found if found and len(found) == len(lines) else None


def alone(statement: cst.CSTNode | None) -> cst.BaseSmallStatement | None:
    """The plain statement that is all of its line; None for others."""
    body = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return body[0] if len(body) == 1 else None


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What ``node`` is made of, in the order of the text, but for brackets, commas and the like, which come
    last; white space and comments are left out. (``node.children`` visits, and takes ten times as long.)"""
    for name in _fields(type(node)):
        value = getattr(node, name)
        for child in value if isinstance(value, (tuple, list)) else (value,):
            if _SHOWN[type(child)]:
                yield child


#: What :meth:`Source.literal` gives for an expression that is not a literal.
NOT_LITERAL: Any = object()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing of a growing tree can be freed: looking for it takes half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Unreadable(Exception):
    """The file cannot be worked on; ``str()`` says why, in words for a note."""


class Source:
    """A parsed file. ``text`` is what edits refer to."""

    def __init__(self, path: str, text: str) -> None:
        """Parse ``text``. Raises :class:`Unreadable` when it is not valid Python."""
        self.path = path
        self.text = text
        self.lines = lines_of(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        with _collector_paused():
            self._read()
        self._imports = imported_names(self.nodes(cst.Import), self.nodes(cst.ImportFrom))

    def _read(self) -> None:
        try:
            wrapper = MetadataWrapper(cst.parse_module(self.text), unsafe_skip_copy=True)
        except cst.ParserSyntaxError as error:
            raise Unreadable(f"line {error.raw_line} cannot be parsed") from None
        except (RecursionError, ValueError, UnicodeError) as error:
            raise Unreadable(f"it cannot be parsed ({error})") from None
        self.module = wrapper.module
        if "\x0c" in self.text and self.module.code != self.text:
            # LibCST loses form feeds: columns would be off, and a wrong edit is worse than none.
            raise Unreadable("parsing changes its text")
        # As `wrapper.resolve` does it, less a visit to all nodes for providers that there are none of.
        self._spans: Mapping[cst.CSTNode, Any] = PositionProvider()._gen(wrapper)
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._nodes: list[cst.CSTNode] = []
        #: The nodes of some types, and beside them ``_order`` of each
        self._by_types: dict[_Types, tuple[list[cst.CSTNode], list[tuple[int, ...]]]] = {}
        self._by_called: dict[str, list[cst.Call]] | None = None  # by the last part of the function's name
        self._index(self.module)

    def _index(self, root: cst.CSTNode) -> None:
        """Parents, and all nodes in the order of the text; white space and comments are left out."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            self._nodes.append(node)
            for child in children(node):
                self._parents[child] = node
                waiting.append(child)
        self._nodes.sort(key=self._order)

    def _order(self, node: cst.CSTNode) -> tuple[int, ...]:
        found = self._spans.get(node)
        if found is None:
            return 0, 0, 0, 0
        start, end = found.start, found.end
        return start.line, start.column, -end.line, -end.column

    # -- places ---------------------------------------------------------------------------------

    def span(self, node: cst.CSTNode) -> Span:
        """``((line, column), (line, column))`` of a node, surrounding whitespace left out."""
        found = self._spans[node]
        return (found.start.line, found.start.column), (found.end.line, found.end.column)

    def line(self, node: cst.CSTNode) -> int:
        """The line that a node starts on, from 1."""
        return self.span(node)[0][0]

    def extent(self, node: cst.CSTNode) -> range:
        """The lines of a node."""
        (first, _), (last, _) = self.span(node)
        return range(first, last + 1)

    def place(self, node: cst.CSTNode) -> tuple[str, int]:
        """The file and the line that a node starts on."""
        return self.path, self.line(node)

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node, to the letter."""
        return self.slice(*self.span(node))

    def operand(self, node: cst.BaseExpression) -> str:
        """The text of an expression, in parentheses unless a dot may follow it as it is."""
        code = self.code(node)
        return code if isinstance(node, DOTTED) else f"({code})"

    def slice(self, start: Position, end: Position) -> str:
        """The text between two positions (line from 1, column from 0)."""
        if start[0] == end[0]:
            return self.lines[start[0] - 1][start[1] : end[1]]
        middle = self.lines[start[0] : end[0] - 1]
        first, last = self.lines[start[0] - 1][start[1] :], self.lines[end[0] - 1][: end[1]]
        return self.newline.join([first, *middle, last])

    def rewritten(self, node: cst.CSTNode, new: Mapping[Any, str]) -> str:
        """The text of ``node`` with some of its parts replaced."""
        start, end = self.span(node)
        pieces: list[str] = []
        for part in sorted(new, key=self.span):
            first, last = self.span(part)
            pieces += [self.slice(start, first), new[part]]
            start = last
        return "".join([*pieces, self.slice(start, end)])

    def indentation(self, line: int) -> str:
        """The white space that ``line`` begins with."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around this one; None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around ``node``, innermost first."""
        while (node := self._parents.get(node)) is not None:  # type: ignore[assignment]
            yield node

    def enclosing(self, node: cst.CSTNode, *types: type[Node]) -> Node | None:
        """The innermost node of one of ``types`` around ``node``."""
        return next((found for found in self.ancestors(node) if isinstance(found, types)), None)

    def inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether a node is ``outer`` or lies in it."""
        return node is outer or any(found is outer for found in self.ancestors(node))

    # -- finding nodes --------------------------------------------------------------------------

    def nodes(self, *types: type[Node], within: cst.CSTNode | None = None) -> list[Node]:
        """All nodes of ``types`` in the order of the text, in the whole file or ``within`` a node."""
        if types not in self._by_types:
            of_types = [node for node in self._nodes if is_kind(type(node), types)]
            self._by_types[types] = of_types, list(map(self._order, of_types))
        found: list[Node] = self._by_types[types][0]  # type: ignore[assignment]  # kept by these very types
        if within is None or within not in self._spans:
            return list(found) if within is None else [node for node in found if self.inside(node, within)]
        # Its decorators and parentheses are children of a node and lie outside of its span.
        spans = [self._spans[node] for node in (within, *children(within)) if node in self._spans]
        first = min((span.start.line, span.start.column) for span in spans)
        last = max((span.end.line, span.end.column) for span in spans)
        orders = self._by_types[types][1]
        nowhere = bisect_left(orders, (1,))  # nodes without a span come first
        low, high = bisect_left(orders, first), bisect_left(orders, (last[0], last[1] + 1))
        near = found[:nowhere] + found[max(low, nowhere) : high]
        return [node for node in near if self.inside(node, within)]

    def at(self, line: int, *types: type[Node]) -> list[Node]:
        """Nodes of ``types`` that cover ``line``; those that begin on it first, then the smallest."""
        found: list[tuple[bool, int, int, Node]] = []
        for node in self.nodes(*types):
            if node not in self._spans:
                continue
            start, end = self.span(node)
            if start[0] <= line <= end[0]:
                found.append((start[0] != line, end[0] - start[0], len(found), node))
        return [entry[-1] for entry in sorted(found, key=lambda entry: entry[:3])]

    def assigned(self, name: str, within: cst.CSTNode | None = None) -> list[cst.BaseExpression]:
        """What plain assignments give ``name``, in the order of the text."""
        return [
            one.value
            for one in self.nodes(cst.Assign, within=within)
            if any(self.code(target.target) == name for target in one.targets)
        ]

    def constant(self, name: str) -> cst.BaseExpression | None:
        """What the file gives ``name``, if it does so once, outside functions and loops, and in no other way
        than by assignments, as ``A = 1`` or ``A, B = 1, 2``."""
        bound = [one for one in self.nodes(cst.Name) if one.value == name and self.binds(one)]
        if len(bound) != 1 or self.enclosing(bound[0], cst.FunctionDef, cst.ClassDef, cst.For, cst.While):
            return None
        assign = self.enclosing(bound[0], cst.Assign)
        return self.given(bound[0]) if assign is not None and len(assign.targets) == 1 else None

    def given(self, name: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
        """What an assignment gives the ``name`` on its left, as in ``a = b = 1`` or ``a, b = 1, 2``; None
        where anything else does."""
        assign = self.enclosing(name, cst.Assign)
        if assign is None:
            return None
        value = assign.value
        for target in (one.target for one in assign.targets):
            if target is name:
                return value
            if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
                pairs = zip(target.elements, value.elements, strict=False)
                given = [right.value for left, right in pairs if left.value is name]
                if given and all(type(one) is cst.Element for one in (*target.elements, *value.elements)):
                    return given[0]
        return None

    def uses(self, name: str, within: cst.CSTNode) -> list[cst.Name]:
        """Where ``name`` is used inside a node; attributes and keywords of that name are left out."""
        return [
            one for one in self.nodes(cst.Name, within=within) if one.value == name and self.is_value(one)
        ]

    def reads(self, name: str, within: cst.CSTNode) -> list[cst.Name]:
        """The same, where it is not given a value."""
        return [one for one in self.uses(name, within) if not self.binds(one)]

    def scope(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Module:
        """The function around ``node``, else the module."""
        return self.enclosing(node, cst.FunctionDef) or self.module

    def functions(self, name: str) -> list[cst.FunctionDef]:
        """The functions and methods of this name, in the order of the text."""
        return [one for one in self.nodes(cst.FunctionDef) if one.name.value == name]

    def decorated(self, function: cst.FunctionDef | None, *names: str) -> bool:
        """Whether a function has a decorator with one of ``names``, called or not (see :meth:`is_named`)."""
        given = [one.decorator for one in function.decorators] if function is not None else []
        return any(self.is_named(one.func if isinstance(one, cst.Call) else one, *names) for one in given)

    def values(self, code: str, within: cst.CSTNode | None = None) -> list[cst.BaseExpression]:
        """What assignments give the name or attribute that is written as ``code``, also among others."""
        given = (self.given(one) for one in self.bindings(code, within))
        return [value for value in given if value is not None]

    def binds(self, name: cst.Name | cst.Attribute) -> bool:
        """Whether a name is given something there, or said to be the file's inside a function."""
        inner: cst.CSTNode = name
        above = self.parent(name)
        while isinstance(above, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            inner, above = above, self.parent(above)
        if isinstance(above, (cst.AssignTarget, cst.AsName, cst.NameItem, cst.ImportAlias)):
            return True
        return getattr(above, "target", None) is inner or getattr(above, "name", None) is inner

    def bindings(self, code: str, within: cst.CSTNode | None = None) -> list[cst.Name | cst.Attribute]:
        """Where the name or attribute that is written as ``code`` is bound."""
        named: list[cst.Name | cst.Attribute] = [*self.nodes(cst.Name, within=within)]
        if "." in code:
            named = [*self.nodes(cst.Attribute, within=within)]
        return [one for one in named if self.code(one) == code and self.binds(one)]

    def returned(self, call: cst.CSTNode) -> cst.BaseExpression | None:
        """What the only ``return`` of the file's own function gives that ``call`` calls. None where that is
        no such call, or the function is not the only one of its name."""
        called = call.func if isinstance(call, cst.Call) else None
        name = called.attr if isinstance(called, cst.Attribute) else called
        if not isinstance(name, cst.Name):
            return None
        functions = self.functions(name.value)
        backs = [back for one in functions for back in self.nodes(cst.Return, within=one)]
        return backs[0].value if len(functions) == len(backs) == 1 else None

    def calls(self, line: int, *names: str) -> list[cst.Call]:
        """Calls that cover ``line``, of functions with one of ``names`` (see :meth:`is_named`)."""
        found = self.at(line, cst.Call)
        return [call for call in found if not names or self.is_named(call.func, *names)]

    def calls_of(self, *names: str) -> list[cst.Call]:
        """Calls in the file of functions with one of ``names`` (see :meth:`is_named`)."""
        if self._by_called is None:
            self._by_called = {}
            for call in self.nodes(cst.Call):
                self._by_called.setdefault(self._called(call.func).rpartition(".")[2], []).append(call)
        last = dict.fromkeys(name.rpartition(".")[2] for name in names)
        found = (call for name in last for call in self._by_called.get(name, ()))
        return [call for call in found if self.is_named(call.func, *names)]

    def call(self, line: int, *names: str) -> cst.Call | None:
        """The first call on a line whose name is one of ``names``; any call where no name is given."""
        return next(iter(self.calls(line, *names)), None)

    def statement(self, node: cst.CSTNode) -> Statement | None:
        """The statement that ``node`` is part of (itself, when it is one); None for one that shares
        the line of its ``if`` or ``for``, as in ``if x: f()``."""
        while node is not None and not isinstance(node, cst.SimpleStatementSuite):
            if isinstance(node, _STATEMENT):
                return node
            node = self._parents.get(node)  # type: ignore[assignment]
        return None

    def statement_at(self, line: int) -> Statement | None:
        """The innermost statement that covers ``line``."""
        found: list[Statement] = [*self.at(line, cst.SimpleStatementLine)]
        found += [node for kind in _COMPOUND for node in self.at(line, kind)]
        return min(found, key=lambda node: _size(self.span(node))) if found else None

    def block(self, node: cst.CSTNode) -> list[Statement]:
        """The statements of the block in which the statement of ``node`` stands."""
        statement = self.statement(node)
        parent = self.parent(statement) if statement is not None else None
        body = parent.body if isinstance(parent, (cst.IndentedBlock, cst.Module)) else ()
        return [found for found in body if isinstance(found, _STATEMENT)]

    def loops(self, node: cst.CSTNode) -> list[cst.For | cst.While]:
        """The loops around ``node`` inside its function, innermost first."""
        found: list[cst.For | cst.While] = []
        for outer in self.ancestors(node):
            if isinstance(outer, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
                break
            if isinstance(outer, (cst.For, cst.While)):
                found.append(outer)
        return found

    def loops_from(self, node: cst.CSTNode) -> list[cst.For | cst.While]:
        """The same, with ``node`` itself first where it is a loop."""
        return [*([node] if isinstance(node, (cst.For, cst.While)) else []), *self.loops(node)]

    def loops_at(self, line: int) -> list[cst.For | cst.While]:
        """The same, of the innermost statement that covers ``line``."""
        statement = self.statement_at(line)
        return self.loops_from(statement) if statement is not None else []

    # -- meaning --------------------------------------------------------------------------------

    def name(self, node: cst.CSTNode | None) -> str:
        """The dotted name of an expression with imports resolved: ``F.gelu`` ->
        ``torch.nn.functional.gelu``; "" for what is not a dotted name."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.append(node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name):
            return ""
        parts.append(self._imports.get(node.value, node.value))
        return ".".join(reversed(parts))

    def imported_from(self, node: cst.CSTNode | None) -> str:
        """The module whose function a dotted name is, by the imports: of ``np.sum`` it is ``numpy``; "" where
        the name does not begin with an imported one."""
        first = node
        while isinstance(first, cst.Attribute):
            first = first.value
        imported = isinstance(first, cst.Name) and first.value in self._imports
        return self.name(node).rpartition(".")[0] if imported else ""

    def is_named(self, node: cst.CSTNode | None, *names: str) -> bool:
        """Whether ``node`` is one of ``names``: a full dotted name, or a last part (``DataLoader``)."""
        found = self._called(node)
        return bool(found) and any(found == name or found.endswith(f".{name}") for name in names)

    def _called(self, node: cst.CSTNode | None) -> str:
        found = self.name(node)
        if not found and isinstance(node, cst.Attribute):
            return node.attr.value  # a method of some expression: ``f(x).item``
        return found

    def is_value(self, name: cst.Name) -> bool:
        """Whether a name stands for a value, and is no attribute's and no keyword's."""
        above = self.parent(name)
        if isinstance(above, cst.Attribute):
            return above.attr is not name
        return not (isinstance(above, cst.Arg) and above.keyword is name)

    def literal(self, node: cst.CSTNode | None) -> Any:
        """The value of a literal expression, or :data:`NOT_LITERAL`."""
        if node is None:
            return NOT_LITERAL
        try:
            return ast.literal_eval(self.code(node).strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, KeyError):
            return NOT_LITERAL

    def entries(self, node: cst.CSTNode | None) -> dict[str, cst.BaseExpression]:
        """What a dict, or a call of ``dict``, gives each key; "**" for what it unpacks. Empty for others."""
        if isinstance(node, cst.Dict):
            keys = [one.key if isinstance(one, cst.DictElement) else None for one in node.elements]
            names = ["**" if key is None else str(self.literal(key)) for key in keys]
            return dict(zip(names, (one.value for one in node.elements), strict=True))
        if not isinstance(node, cst.Call) or self.name(node.func) != "dict":
            return {}
        return {one.keyword.value if one.keyword is not None else "**": one.value for one in node.args}

    def argument(self, call: cst.Call, name: str, position: int | None = None) -> cst.Arg | None:
        """The argument passed by keyword ``name``, or as the ``position``-th positional one."""
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == name:
                return arg
        if position is None:
            return None
        plain = [arg for arg in call.args if arg.keyword is None]
        if len(plain) <= position or any(arg.star for arg in plain[: position + 1]):
            return None
        return plain[position]

    def passed(self, call: cst.Call, name: str, position: int | None = None, usual: Any = None) -> Any:
        """The literal that is passed as an argument, NOT_LITERAL for another expression; else ``usual``."""
        given = self.argument(call, name, position)
        return self.literal(given.value) if given is not None else usual

    def taking(self, node: cst.CSTNode) -> cst.Call | None:
        """The call that ``node`` is an argument of; None where it is none, or only a part of one."""
        arg = self.parent(node)
        call = self.parent(arg) if isinstance(arg, cst.Arg) else None
        return call if isinstance(call, cst.Call) else None

    def arguments(self, call: cst.Call, order: Sequence[str]) -> dict[str, cst.Arg] | None:
        """The arguments of a call by their names, which are ``order`` of those without; None where it unpacks
        any, or passes more by position."""
        plain = [arg for arg in call.args if arg.keyword is None]
        if any(arg.star for arg in call.args) or len(plain) > len(order):
            return None
        named = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
        return dict(zip(order, plain, strict=False)) | named

    def unpacked(self, call: cst.Call) -> list[cst.BaseExpression]:
        """What is passed as ``**value``."""
        return [arg.value for arg in call.args if arg.star == "**"]


def _size(span: Span) -> Position:
    (start_line, start_column), (end_line, end_column) = span
    return end_line - start_line, end_column - start_column


@lru_cache(maxsize=16)
def parsed(path: str, text: str) -> Source:
    """A file parsed once for all who look at the same text, such as the fixes of several findings."""
    return Source(path, text)
