"""What the script read from YAML, JSON and TOML files, and the command-line options that it declared."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..imports import when_imported
from ..patches import Patches
from .peek import own_attributes
from .syntax import same

#: Bytes; larger files are data, not configuration.
LARGEST = 1_000_000
MOST_READ = 200  # files; more are data
MOST_FILES = 2_000  # most files searched for the text that ``json.loads`` received
_DEPTH = 12
_WORDS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\],:\n]')


class Option(NamedTuple):
    """A call of ``add_argument``, with its file and line; ``after``: how many of ``Loaded.defaults`` were
    there before it."""

    action: Any
    file: str
    line: int
    after: int = 0


class Defaults(NamedTuple):
    """A call of ``set_defaults``, with its file and line."""

    given: Dict[str, Any]
    file: str
    line: int


class Loaded:
    def __init__(self, place: Callable[[Any], Optional[Tuple[str, int]]]) -> None:
        self.place = place  # of a frame: file and line of the nearest user's
        self.patches = Patches()
        self.options: List[Option] = []
        self.defaults: List[Defaults] = []
        self.read: List[Tuple[Any, str, str, str]] = []  # object, path or "", format, text

    def install(self) -> None:
        """Watch what reads options and files: argparse, json, yaml, configparser, tomllib. Each when it is
        imported."""
        when_imported("argparse", self._argparse)
        when_imported("json", lambda module: self._reading(module, "json", ("load", "loads")))
        when_imported("yaml", lambda module: self._reading(module, "yaml", ("load",)))
        when_imported("configparser", self._ini)
        for name in ("tomllib", "tomli"):
            when_imported(name, lambda module: self._reading(module, "toml", ("load", "loads")))

    def remove(self) -> None:
        """Put the modules' own functions back."""
        self.patches.restore()

    def _argparse(self, module: Any) -> None:
        def adding(original: Any) -> Any:
            def add_argument(self_: Any, *arguments: Any, **named: Any) -> Any:
                action = original(self_, *arguments, **named)
                place = self.place(sys._getframe(1))
                if place is not None:
                    self.options.append(Option(action, *place, len(self.defaults)))
                return action

            return add_argument

        def setting(original: Any) -> Any:
            def set_defaults(self_: Any, **named: Any) -> Any:
                original(self_, **named)
                place = self.place(sys._getframe(1))
                if place is not None:
                    self.defaults.append(Defaults(named, *place))

            return set_defaults

        self.patches.replace(module._ActionsContainer, "add_argument", adding)
        self.patches.replace(module._ActionsContainer, "set_defaults", setting)

    def _ini(self, module: Any) -> None:
        def make(original: Any) -> Any:
            def read(self_: Any, *arguments: Any, **named: Any) -> Any:
                names = original(self_, *arguments, **named)
                try:
                    for path in names if len(self.read) < MOST_READ else ():
                        with open(path, encoding="utf-8") as file:
                            text = file.read(LARGEST)
                        result = {
                            section: dict(self_.items(section, raw=True)) for section in self_.sections()
                        }
                        self.read.append((result, os.path.abspath(path), "ini", text))
                except Exception:
                    pass
                return names

            return read

        self.patches.replace(module.RawConfigParser, "read", make)

    def _reading(self, module: Any, kind: str, names: Tuple[str, ...]) -> None:
        def make(original: Any) -> Any:
            def load(source: Any, *arguments: Any, **named: Any) -> Any:
                result = original(source, *arguments, **named)
                if len(self.read) >= MOST_READ:
                    return result
                try:
                    self._note(source, kind, result)
                except Exception:
                    pass
                return result

            return load

        for name in names:
            self.patches.replace(module, name, make)

    def _note(self, source: Any, kind: str, result: Any) -> None:
        path, text = getattr(source, "name", None), source
        if isinstance(path, str):
            path = os.path.abspath(path)
            if os.path.getsize(path) > LARGEST:
                return
            with open(path, encoding="utf-8") as file:
                text = file.read()
        if isinstance(text, (bytes, bytearray)):
            text = text.decode("utf-8")
        if isinstance(text, str) and len(text) <= LARGEST:
            self.read = [entry for entry in self.read if entry[0] is not result]
            self.read.append((result, path if isinstance(path, str) else "", kind, text))

    def option(self, name: str, value: Any) -> Iterator[Tuple[Option, Optional[str]]]:
        """Options that give ``name`` the ``value``, the last declared first. Each comes with the word of the
        command line that sets it, or None if it is the default."""
        named = [one for one in reversed(self.options) if one.action.dest == name]
        words = [_word(one.action.option_strings) for one in named]
        for option, word in zip(named, words):
            if word is not None or not option.action.option_strings:
                yield option, word or name
        for option in named if not any(words) else ():
            default = option.action.default
            if option.action.option_strings and (default is value or same(value, default)):
                yield option, None

    def set_default(self, option: Option, own: bool) -> Optional[Defaults]:
        """The call of ``set_defaults`` that gave an option its default. ``own``: the option's own call has
        one, which counts for more than what was set before it."""
        name, value = option.action.dest, option.action.default
        later = self.defaults[option.after if own else 0 :]
        return next(
            (one for one in reversed(later) if name in one.given and same(one.given[name], value)), None
        )

    def places(
        self,
        name: str,
        value: Any,
        holder: Any,
        literal: Callable[[str], Optional[Tuple[str, int]]] = lambda text: None,
    ) -> List[Tuple[int, str, int, bool]]:
        """Lines of files that give ``name`` the ``value``: (likeness, path, line, whether ``holder`` is the
        very object that was read); ``holder`` is the mapping or object that has it now, or None; ``literal``:
        where a text begins that stands in the script."""
        found = []
        for result, path, kind, text in self.read:
            for keys, owner in _having(result, name, value):
                likeness = _likeness(owner, holder) if holder is not None else 0
                place, first = path, 1
                if not place:
                    place, first = literal(text) or (_file_with(text, kind), 1)
                line = line_of(text, kind, keys) if place else 0
                if line:
                    found.append((likeness, place, first + line - 1, owner is holder))
        return found


def _word(options: List[str]) -> Optional[str]:
    for word in sys.argv[1:]:
        for option in options:
            if word == option or word.startswith(option + "="):
                return option
            if not option.startswith("--") and word.startswith(option) and len(option) == 2:
                return option
    return None


def members(thing: Any) -> Dict[Any, Any]:
    """The entries of a mapping, a list or a namespace."""
    if isinstance(thing, dict):
        return thing
    if isinstance(thing, (list, tuple)):
        return dict(enumerate(thing)) if len(thing) <= 1000 else {}
    if isinstance(thing, (str, bytes, int, float, type(None))):
        return {}
    return dict(own_attributes(thing))


def _having(thing: Any, name: str, value: Any, keys: Tuple[Any, ...] = ()) -> Iterator[Tuple[Any, Any]]:
    if len(keys) > _DEPTH:
        return
    for key, inner in members(thing).items():
        if key == name and (inner is value or same(value, inner)):
            yield (*keys, key), thing
        yield from _having(inner, name, value, (*keys, key))


def _likeness(one: Any, other: Any) -> int:
    """Number of entries that both share, minus the number of those that differ."""
    if one is other:
        return 1000
    first, second = members(one), members(other)
    shared = [key for key in first if key in second]
    return sum(1 if same(second[key], first[key]) else -1 for key in shared)


def _file_with(text: str, kind: str) -> str:
    """The file below the script's or the working folder with the content ``text``; "" for none."""
    endings = {"json": (".json",), "yaml": (".yaml", ".yml"), "toml": (".toml",)}[kind]
    size, seen = len(text.encode("utf-8")), 0
    main = getattr(sys.modules.get("__main__"), "__file__", None) or "."
    for root in dict.fromkeys((os.path.dirname(os.path.abspath(main)), os.getcwd())):
        for folder, inner, names in os.walk(root):
            inner[:] = [name for name in inner if not name.startswith((".", "__")) and name != "node_modules"]
            seen += len(names)
            if seen > MOST_FILES:
                return ""
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(endings) and os.path.getsize(path) == size:
                    with open(path, encoding="utf-8") as file:
                        if file.read() == text:
                            return path
    return ""


def line_of(text: str, kind: str, keys: Tuple[Any, ...]) -> int:
    """The line of the value at ``keys``; 0 where it is not found."""
    try:
        return {"json": _json_line, "yaml": _yaml_line, "toml": _toml_line, "ini": _toml_line}[kind](
            text, keys
        )
    except Exception:
        return 0


def _yaml_line(text: str, keys: Tuple[Any, ...]) -> int:
    yaml: Any = sys.modules["yaml"]
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in keys:
        if isinstance(node.value, list) and isinstance(key, int) and node.id == "sequence":
            node = node.value[key]
        else:
            node = next(inner for name, inner in reversed(node.value) if name.value == str(key))
    line: int = node.start_mark.line
    return line + 1


def _json_line(text: str, keys: Tuple[Any, ...]) -> int:
    """The 1-based line of the value at ``keys`` in a JSON text; 0 if there is none."""
    stack: List[List[Any]] = []  # [key or index, whether an object]
    line, word = 1, ""
    for match in _WORDS.finditer(text):
        token = match.group()
        if token == "\n":
            line += 1
        elif token in "{[":
            stack.append([None if token == "{" else 0, token == "{"])
        elif token in "}]":
            stack.pop()
        elif token == ":":
            stack[-1][0] = _unquoted(word)
            if tuple(entry[0] for entry in stack) == keys:
                return line
        elif token == ",":
            if not stack[-1][1]:
                stack[-1][0] += 1
        else:
            word = token
    return 0


def _unquoted(word: str) -> str:
    import ast

    return str(ast.literal_eval(word.replace("\\/", "/")))


def _toml_line(text: str, keys: Tuple[Any, ...]) -> int:
    table: Tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.strip()
        if plain.startswith("["):
            table = _dotted(plain.strip("[]").partition("]")[0])
        elif ("=" in plain or ":" in plain) and not plain.startswith(("#", ";")):
            here = table + _dotted(re.split("[=:]", plain)[0])
            wanted = tuple(key for key in keys if isinstance(key, str))
            if here == wanted or ("{" in plain and here == wanted[: len(here)] and wanted[-1] in plain):
                return number
    return 0


def _dotted(name: str) -> Tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in name.split("."))
