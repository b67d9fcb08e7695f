"""A VS Code launch configuration, and the variables that it and settings may hold, as what is run."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpline.capture.interpreter import from_beside

_VARIABLE = re.compile(r"\$\{(?:(env|command|input|config):)?([^}]+)\}")
#: The fields of a configuration that are read.
_FIELDS = ("program", "module", "args", "python", "cwd", "env", "envFile", "request", "type", "name")
#: The types that their values may have.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("program", "module", "cwd", "envFile"), (str,)),
    **dict.fromkeys(("args", "python"), (str, list)),
    "env": (dict,),
}
#: A line of an ``.env`` file.
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*")
#: In a launcher, the interpreter that runs the script.
PYTHON = "${python}"
#: Launchers as a configuration names them: by module, which its interpreter runs as VS Code would have it do,
#: or by the program that pip installs.
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
#: What a person calls some of them.
_MODULES = {"torch.distributed.run": "torchrun", "accelerate.commands.launch": "accelerate launch"}
_PROGRAMS = {"torchrun": ("torchrun",), "accelerate": ("accelerate",), "deepspeed": ("deepspeed",)}


class Unresolved(Exception):
    """A configuration that cannot be run; ``str()`` says why."""


def variables(path: str, folder: Path) -> dict[str, str]:
    """The variables that can be replaced without the editor, for a file of a folder."""
    return {
        "file": path,
        "workspaceFolder": str(folder),
        "workspaceRoot": str(folder),
        "workspaceFolderBasename": folder.name,
        "fileDirname": str(Path(path).parent),
        "fileBasename": Path(path).name,
        "fileBasenameNoExtension": Path(path).stem,
        "relativeFile": os.path.relpath(path, folder),
        "relativeFileDirname": os.path.relpath(Path(path).parent, folder),
        "cwd": str(folder),
        "userHome": str(Path.home()),
        "pathSeparator": os.sep,
    }


def replaced(value: Any, names: Mapping[str, str]) -> Any:
    """``value`` with its variables replaced; one that is not known stays.

    Raises Unresolved for ``${command:…}``, ``${input:…}`` and ``${config:…}``, which only the editor knows.
    """

    def variable(match: re.Match[str]) -> str:
        if match[1] == "env":
            return os.environ.get(match[2], "")
        if match[1]:
            raise Unresolved(f"only the editor knows {match[0]}: put its value into launch.json")
        return names.get(match[2], match[0])

    if isinstance(value, str):
        return _VARIABLE.sub(variable, value)
    if isinstance(value, list):
        return [str(replaced(entry, names)) for entry in value]
    if isinstance(value, dict):
        return {str(name): str(replaced(entry, names)) for name, entry in value.items()}
    return value


def interpreter(value: str, path: str, folder: Path) -> str:
    """An interpreter as a setting names it: with variables, ``~``, or relative to the folder; a bare name is
    looked for on the PATH later."""
    named = str(Path(str(replaced(value, variables(path, folder)))).expanduser()) if value else ""
    return str(folder / named) if os.sep in named and not Path(named).is_absolute() else named


def configuration(launch: Mapping[str, Any], path: str, folder: Path) -> dict[str, Any]:
    """``program`` (absolute), ``module``, ``args``, ``python``, ``cwd``, ``env`` and ``launcher`` of a launch
    configuration; only what it has. Raises Unresolved."""
    if launch.get("request", "launch") != "launch":
        raise Unresolved("it attaches to a running process; only a launch configuration can be profiled")
    for name, types in _TYPES.items():
        if launch.get(name) and not isinstance(launch[name], types):
            raise Unresolved(f'"{name}" has a value of the wrong type')
    names = variables(path, folder)
    found = {name: replaced(launch[name], names) for name in _FIELDS if launch.get(name)}
    cwd = Path(found["cwd"]).expanduser() if found.get("cwd") else folder
    cwd = cwd if cwd.is_absolute() else folder / cwd
    if isinstance(found.get("args"), str):
        try:
            found["args"] = shlex.split(found["args"])
        except ValueError as error:
            raise Unresolved(f'"args": {error}') from None
    if isinstance(found.get("python"), list):
        found["python"] = found["python"][0]
    if found.get("python"):
        found["python"] = interpreter(found["python"], path, folder)
    if found.get("cwd"):
        found["cwd"] = str(cwd)
    if launch:
        file = Path(found.pop("envFile", folder / ".env")).expanduser()  # VS Code's own default
        found["env"] = {**_of_file(folder / file), **found.get("env", {})}
    found |= _without_launcher(found)
    if found.get("program"):
        program = Path(found["program"]).expanduser()
        found["program"] = str(program if program.is_absolute() else cwd / program)
    return found


def _of_file(path: Path) -> dict[str, str]:
    """The variables of an ``.env`` file; none where there is no such file, as in VS Code."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for match in filter(None, map(_ASSIGNMENT.fullmatch, lines)):
        name, value = match.groups()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[name] = value[1:-1] if quoted else value.partition(" #")[0].rstrip()
    return found


def launcher_with(words: Sequence[str], python: str) -> tuple[str, ...]:
    """A launcher as a command: with the interpreter, or from beside it if the PATH has no such program."""
    found = [python if word == PYTHON else word for word in words]
    return from_beside(found, python) if found else ()


def with_any_python(words: Sequence[str], python: str) -> tuple[str, ...]:
    """The launcher of an earlier run, with that run's interpreter (``python``) left open."""
    return tuple(PYTHON if python and word == python else word for word in words)


def spoken(words: Sequence[str]) -> str:
    """A launcher as a person would type it: ``torchrun --nproc-per-node 2``."""
    rest = list(words)
    if rest[1:2] == ["-m"]:
        rest = rest[2:]
    if not rest:
        return ""
    name = _MODULES.get(rest[0], Path(rest[0]).name)
    return " ".join((name, *rest[1:]))


def _without_launcher(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """``torchrun --nproc-per-node 2 train.py --epochs 1`` as the launcher, the script and its arguments."""
    program, module = str(configuration.get("program") or ""), str(configuration.get("module") or "")
    args = [str(arg) for arg in configuration.get("args") or ()]
    if module in _LAUNCHERS:
        launcher = [PYTHON, "-m", module]
    elif Path(program).stem in _PROGRAMS and Path(program).suffix in ("", ".py", ".exe"):
        launcher = [program if os.sep in program else Path(program).stem]
        if args[:1] == ["launch"]:
            launcher, args = [*launcher, "launch"], args[1:]
    else:
        return {}
    for at, arg in enumerate(args):
        if arg in ("-m", "--module") and at + 1 < len(args):
            return {
                "launcher": [*launcher, *args[:at]],
                "module": args[at + 1],
                "program": None,
                "args": args[at + 2 :],
            }
        if arg.endswith(".py"):
            return {
                "launcher": [*launcher, *args[:at]],
                "program": arg,
                "module": None,
                "args": args[at + 1 :],
            }
    raise Unresolved(f"it starts {module or launcher[0]}, but none of its arguments is a script")
