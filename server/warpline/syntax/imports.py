"""Imports of a file: what a name means, and how to get a name that is not imported yet."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst


def dotted(node: cst.CSTNode | None) -> str:
    """``a.b.c`` of a Name or Attribute, "" for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""


def imported_names(imports: Iterable[cst.Import], froms: Iterable[cst.ImportFrom]) -> dict[str, str]:
    """``{local name: dotted name}`` of all imports, wherever in the file they stand."""
    found: dict[str, str] = {}
    for statement in imports:
        for alias in statement.names:
            full = dotted(alias.name)
            if alias.asname is not None:
                found[dotted(alias.asname.name)] = full
            else:
                found[full.split(".")[0]] = full.split(".")[0]
    for origin in froms:
        module = "." * len(origin.relative) + dotted(origin.module)
        if isinstance(origin.names, cst.ImportStar):
            continue
        for alias in origin.names:
            name = dotted(alias.name)
            local = dotted(alias.asname.name) if alias.asname is not None else name
            found[local] = f"{module}.{name}" if module and not module.endswith(".") else f"{module}{name}"
    return found


def local_name(names: dict[str, str], wanted: str) -> str | None:
    """How ``wanted`` (dotted) can be written with the imports ``names``; None when it cannot.

    ``torch.nn.functional.gelu`` -> ``F.gelu`` when ``F`` is imported, else through ``nn``, ``torch``.
    The longest imported prefix wins. A submodule that only its parent's import would bring
    (``torch.utils.data``) counts: torch itself imports those that the rules name.
    """
    best: tuple[int, str] | None = None
    for local, full in names.items():
        if wanted == full or wanted.startswith(f"{full}."):
            written = local + wanted[len(full) :]
            if best is None or len(full) > best[0]:
                best = (len(full), written)
    return best[1] if best else None


def _is_string(small: cst.BaseSmallStatement) -> bool:
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def import_line(module: cst.Module) -> int:
    """Index into ``module.body`` before which a new import belongs: after the last import of the
    leading run of docstring, ``__future__`` and other imports (also inside ``try``: not looked into)."""
    last = 0
    for index, statement in enumerate(module.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        kinds = [type(small) for small in statement.body]
        if all(kind in (cst.Import, cst.ImportFrom) for kind in kinds):
            last = index + 1
        elif index == 0 and _is_string(statement.body[0]):
            last = 1
        else:
            break
    return last
