"""A VS Code launch configuration, and the variables that it and settings may hold, as what is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_VARIABLE = re.compile(r"\$\{(?:(env|command|input|config):)?([^}]+)\}")
#: The fields of a configuration that are read.
_FIELDS = ("program", "module", "args", "python", "cwd", "env", "envFile", "request", "type", "name")
#: In a launcher, the interpreter that runs the script.
PYTHON = "${python}"
#: Launchers as a configuration names them: by module, which its interpreter runs as VS Code would have it do,
#: or by the program that pip installs.
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
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
    names = variables(path, folder)
    found = {name: replaced(launch[name], names) for name in _FIELDS if launch.get(name)}
    cwd = Path(found["cwd"]).expanduser() if found.get("cwd") else folder
    cwd = cwd if cwd.is_absolute() else folder / cwd
    if isinstance(found.get("args"), str):
        found["args"] = shlex.split(found["args"])
    if isinstance(found.get("python"), list):
        found["python"] = found["python"][0]
    if found.get("python"):
        found["python"] = interpreter(found["python"], path, folder)
    if found.get("cwd"):
        found["cwd"] = str(cwd)
    found |= _without_launcher(found)
    if found.get("program"):
        program = Path(found["program"]).expanduser()
        found["program"] = str(program if program.is_absolute() else cwd / program)
    return found


def launcher_with(words: Sequence[str], python: str) -> tuple[str, ...]:
    """A launcher as a command: with the interpreter, and from beside it where the PATH has no such program.
    An editor that was started from a menu does not have the environment's programs on its PATH."""
    found = [python if word == PYTHON else word for word in words]
    if found and os.sep not in found[0] and shutil.which(found[0]) is None:
        beside = Path(python).with_name(found[0])
        found[0] = str(beside) if os.access(beside, os.X_OK) else found[0]
    return tuple(found)


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
