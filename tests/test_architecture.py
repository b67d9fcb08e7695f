"""What ``server/ARCHITECTURE.md`` promises, as far as the sources alone can show it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.conftest import ROOT, environment
from warpline.wire import control, records, run, stages, timing
from warpline.wire.inside import INSIDE_PAIRS

PACKAGE = ROOT / "server/warpline"
RUNNER = PACKAGE / "capture/runner"
WIRE = PACKAGE / "wire"
PAGE = (ROOT / "server/ARCHITECTURE.md").read_text(encoding="utf-8")
MODULES = sorted(PACKAGE.rglob("*.py"))


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of the table below ``## heading``, header and rule left out."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    for line in table[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def unit(parts: tuple[str, ...]) -> str:
    return "capture/runner" if parts[:2] == ("capture", "runner") else parts[0]


def unit_of(path: Path) -> str:
    return unit(path.relative_to(PACKAGE).with_suffix("").parts)


@cache
def parsed(path: Path) -> ast.Module:
    """Shared by all tests: not to be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """The trees are half a million objects, which the collector would look at in all later tests."""
    yield
    for kept in (parsed, nodes, imports):
        kept.cache_clear()


@cache
def imports(path: Path, *, typing: bool = True) -> tuple[str, ...]:
    """Dotted names of all that ``path`` imports, at its top or inside a function; relative ones resolved.
    Without ``typing``, not those under ``if TYPE_CHECKING``."""
    package = path.relative_to(PACKAGE.parent).parts[:-1]
    found: list[str] = []
    at_the_top = [node for node in parsed(path).body if typing or not isinstance(node, ast.If)]
    for node in (node for top in at_the_top for node in ast.walk(top)):
        if isinstance(node, ast.Import):
            found += (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += node.module.split(".") if node.module else []
            found += (".".join((*base, name.name)) for name in node.names)
    return tuple(found)


def of_ours(path: Path) -> set[str]:
    """Units of ours that ``path`` imports, its own left out."""
    found = {unit(tuple(name.split(".")[1:])) for name in imports(path) if name.startswith("warpline.")}
    return {name for name in found if not name.startswith("__")} - {unit_of(path)}


def from_outside(path: Path) -> set[str]:
    names = {name.split(".")[0] for name in imports(path)}
    return names - sys.stdlib_module_names - {"warpline", "__future__"}


OURS = {name: words(ours) for first, ours, _ in rows("Imports") for name in words(first)}
OUTSIDE = {name: words(outside) for first, _, outside in rows("Imports") for name in words(first)}
EVERYTHING = next(name for first, ours, _ in rows("Imports") if ours == "everything" for name in words(first))


def test_every_unit_stands_in_the_import_table() -> None:
    assert {unit_of(path) for path in MODULES} == set(OURS)


@pytest.mark.parametrize("name", sorted(set(OURS) - {EVERYTHING}))
def test_imports_are_those_of_the_table(name: str) -> None:
    for path in MODULES:
        if unit_of(path) == name:
            assert of_ours(path) <= OURS[name], path
            if name != "capture/runner":  # the next test knows its own modules
                assert from_outside(path) <= OUTSIDE[name], path


def test_the_runner_needs_only_the_standard_library_and_torch() -> None:
    for path in RUNNER.rglob("*.py"):
        assert of_ours(path) <= {"wire"}, path
        assert from_outside(path) <= OUTSIDE["capture/runner"], path


def test_what_runs_in_the_target_is_python_3_9() -> None:
    """``feature_version`` does not see that ``a[b := 1]`` and ``{b := 1}`` want parentheses there."""
    for path in (*RUNNER.rglob("*.py"), *WIRE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        bare = [
            one
            for node in ast.walk(ast.parse(text, feature_version=(3, 9)))
            for one in subscripts_and_elements(node)
            if isinstance(one, ast.NamedExpr) and f"({ast.get_source_segment(text, one)})" not in text
        ]
        assert not bare, f"{path}:{bare[0].lineno}"


def subscripts_and_elements(node: ast.AST) -> list[ast.expr]:
    """What stands in the brackets of a subscript, or in the braces of a set."""
    if isinstance(node, ast.Set):
        return node.elts
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def last_name(called: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty where it is no name."""
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def test_every_function_is_typed() -> None:
    """Those of the runner and of wire too; mypy says whether the types are right."""
    for path in MODULES:
        for one in functions(path):
            given = one.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            bare = [arg.arg for arg in named if arg is not None and arg.annotation is None]
            assert set(bare) <= {"self", "cls"}, f"{path}:{one.lineno} {bare}"
            assert one.returns is not None, f"{path}:{one.lineno} {one.name}"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"]
    assert "exclude" not in settings
    assert not [one for one in settings["overrides"] if "warpline" in str(one["module"])]


def documented(node: ast.AST, *, private: bool = True) -> Iterator[bool]:
    """Whether each class, function and method below ``node`` has a docstring; nested functions left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if private or not child.name.startswith("_"):
                yield ast.get_docstring(child) is not None
            if isinstance(child, ast.ClassDef):
                yield from documented(child, private=private)
        else:
            yield from documented(child, private=private)


@pytest.mark.parametrize(("private", "least"), [(True, 0.6), (False, 0.75)])
def test_most_is_documented(private: bool, least: float) -> None:
    found = [one for path in MODULES for one in documented(parsed(path), private=private)]
    assert len(found) > 2000
    assert sum(found) / len(found) >= least


def test_docstrings_are_sentences() -> None:
    """One that begins with "Of" or "Those" cannot be read without the function's name and its types."""
    found = [
        f"{path}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and re.match(r"(Of|Those|As|None|In|By|For each)\b", ast.get_docstring(node) or "")
    ]
    assert not found, "begin with what it does or returns:\n" + "\n".join(found)


#: What a caller has to expect: errors in one line for the user, and edits that are not made.
ERRORS = {"Problem", "Refused", "Failed"}


def own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child
            yield from own(child)


def raised(function: ast.AST) -> set[str]:
    raises = [node.exc for node in own(function) if isinstance(node, ast.Raise) and node.exc is not None]
    calls = [one.func if isinstance(one, ast.Call) else one for one in raises]
    return {ast.unparse(one).split(".")[-1] for one in calls} & ERRORS


def public(node: ast.AST, page: str = "") -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Public functions and methods below ``node`` with what their docstring and their class's say."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public(child, ast.get_docstring(child) or "")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and not child.name.startswith("_"):
            yield child, page + (ast.get_docstring(child) or "")


def test_what_is_public_says_which_errors_it_raises() -> None:
    """A command's ``run`` raises Problem without saying so: that is what a command does."""
    seen = 0
    for path in MODULES:
        if unit_of(path) == "commands":
            continue
        for function, page in public(parsed(path)):
            errors = raised(function)
            seen += len(errors)
            missing = {error for error in errors if error not in page}
            assert not missing, f"{path}:{function.lineno} {function.name} does not say it raises {missing}"
    assert seen > 60


def test_only_capture_knows_the_runner() -> None:
    for path in MODULES:
        if unit_of(path) not in ("capture", "capture/runner"):
            assert not [name for name in imports(path) if ".capture.runner" in name], path


def test_facts_of_sites_are_read_by_their_types() -> None:
    """``wire.sites.facts_of`` gives them; a key that is a string in a rule is in nobody's definition."""
    for path in MODULES:
        if unit_of(path) not in ("wire", "capture/runner"):
            for node in nodes(path):
                read = node.value if isinstance(node, ast.Subscript) else None
                if isinstance(node, ast.Attribute) and node.attr in ("get", "items", "keys", "values"):
                    read = node.value
                named = isinstance(read, ast.Attribute) and read.attr == "facts"
                assert not named, f"{path}:{node.lineno}"


def literals(path: Path) -> Iterator[ast.Constant]:
    """Strings in the code of ``path``; not docstrings."""
    for node in nodes(path):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and not isinstance(node, ast.Expr):
                yield child


def test_names_that_cross_stand_in_wire_alone() -> None:
    """Files of a run, stages and words of a turn."""
    files = {run.MANIFEST, run.FACTS, run.LOCATIONS, run.SOURCES, run.LINES, timing.NAME, INSIDE_PAIRS}
    crossing = files | {control.GO, control.END, records.AGAIN}
    telling = ("progress", "Progress")
    for path in MODULES:
        if unit_of(path) == "wire":
            continue
        for literal in literals(path):
            assert literal.value not in crossing, f"{path}:{literal.lineno} {literal.value!r}"
        for node in nodes(path):
            if isinstance(node, ast.Call) and node.args and last_name(node.func) in telling:
                said = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                assert said not in stages.ALL, f"{path}:{node.lineno}"


def crosses(value: ast.expr) -> bool:
    """A string, bytes or a bit: what two processes have to agree on. Thresholds are each module's own."""
    text = isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))
    return text or (isinstance(value, ast.BinOp) and isinstance(value.op, ast.LShift))


def constants(paths: Iterable[Path]) -> dict[tuple[str, str], Path]:
    """``(NAME, value)`` that modules define at their top, where it may cross."""
    found = {}
    for path in paths:
        for node in parsed(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name.isupper() and crosses(node.value):
                    found[name, ast.unparse(node.value)] = path
    return found


def test_no_constant_is_written_on_both_sides() -> None:
    ours = constants(path for path in MODULES if unit_of(path) not in ("wire", "capture/runner"))
    theirs = constants(RUNNER.rglob("*.py"))
    both = {name: (ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
    assert not both


def test_wire_is_data() -> None:
    """Frozen dataclasses and enumerations that Python 3.9 can make, with no more than derived fields; so is
    what is their base without being made itself."""
    for path in WIRE.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and "Enum" not in [ast.unparse(one) for one in node.bases]:
                made = [ast.unparse(one) for one in node.decorator_list]
                assert made == ["dataclass(frozen=True)"] * (node.name != "Placed"), f"{path}:{node.lineno}"
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                derived = [one for one in methods if "property" in map(ast.unparse, one.decorator_list)]
                assert methods == derived, f"{path}:{node.lineno}"


def test_no_circle_in_the_table() -> None:
    left = {name: set(ours) for name, ours in OURS.items() if name not in (EVERYTHING, "__main__")}
    while left:
        free = {name for name, ours in left.items() if not ours & set(left)}
        assert free, f"these import each other in a circle: {sorted(left)}"
        left = {name: ours for name, ours in left.items() if name not in free}


def test_no_circle_between_files() -> None:
    """Imports inside functions included; those for type checking as well, except in the runner, whose stages
    and observers name the session that holds them."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in MODULES
        if path.name != "__init__.py"
    }
    left = {
        name: {
            one
            for each in imports(path, typing=RUNNER not in path.parents)
            for one in (each, each.rpartition(".")[0])
            if one in files and one != name
        }
        for name, path in files.items()
    }
    while left:
        free = {name for name, ours in left.items() if not ours & set(left)}
        assert free, f"these import each other in a circle: {sorted(left)}"
        left = {name: ours for name, ours in left.items() if name not in free}


def test_every_folder_is_on_the_map() -> None:
    folders = {unit_of(path) for path in MODULES if path.parent != PACKAGE}
    assert folders == {name for first, _ in rows("Map") for name in words(first)}


def test_only_convert_makes_positions() -> None:
    for path in (PACKAGE / "lsp").rglob("*.py"):
        if path.name != "convert.py":
            made = [
                node.lineno
                for node in nodes(path)
                if isinstance(node, ast.Call) and last_name(node.func) == "Position"
            ]
            assert not made, f"{path}:{made}"


def test_nothing_from_a_run_is_unpickled_or_executed() -> None:
    for path in MODULES:
        if path.is_relative_to(RUNNER):
            continue  # runs the user's script: that is what it is for
        names = {name.split(".")[0] for name in imports(path)}
        assert not names & {"pickle", "marshal", "shelve", "runpy", "code"}, path
        called = {
            node.func.id
            for node in nodes(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"eval", "exec", "compile", "__import__"}, path


def test_one_place_formats_numbers() -> None:
    formatted = re.compile(r"\{[^{}]*:[^{}]*[.]\d+[fge]\}\s*(ms|s|%|percent|[KMG]i?B)\b")
    for path in MODULES:
        if path != PACKAGE / "model/units.py" and not path.is_relative_to(RUNNER):
            found = formatted.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path}: {found and found.group()}: use warpline.view.units"


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.ts", "*.mjs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_names_say_what_is_inside() -> None:
    empty = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
    for path in sources():
        if path.is_relative_to(ROOT / "tests/corpus"):
            continue  # scripts as other people write them
        assert not {part.removesuffix(path.suffix) for part in path.relative_to(ROOT).parts} & empty, path


def test_the_language_server_starts_light() -> None:
    heavy = ("torch", "pandas", "numpy", "libcst", "rich")
    script = f"import sys, warpline.lsp.serve; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, timeout=180
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_trace_without_lines_is_imported_without_libcst(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [event]}))
    script = (
        "import sys; from warpline.__main__ import main; "
        "print(main(['import', 'trace.json']), 'libcst' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "0 False", done.stdout + done.stderr
