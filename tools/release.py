"""Make a release: ``python tools/release.py 0.2.0 --dry-run`` shows it, without ``--dry-run`` it is made.

Writes the version into the files that need it, dates its section of CHANGELOG.md, runs all tests, builds the
wheel, the sdist and the ``.vsix``, commits, and tags. It pushes and publishes nothing: it prints how to.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+")
#: Where the version is written. The first one is what the others are copied from.
SOURCE, PACKAGE, LOCK = "server/warpline/__init__.py", "package.json", "package-lock.json"
CHANGELOG = "CHANGELOG.md"
COMMANDS = (
    ("make", "test"),
    (".venv/bin/python", "-m", "hatchling", "build", "--directory", "dist/python"),
    ("npm", "run", "package", "--", "linux-x64", "linux-arm64", "darwin-arm64", "universal"),
)


class Refused(Exception):
    """One line that says why no release is made."""


def changes(root: Path, version: str, day: datetime.date) -> dict[str, str]:
    """The new text of each file that the release changes, by its path below ``root``.

    Raises Refused where the version is not one, is older than the present one, or has no section in the
    changelog that is still open.
    """
    if not VERSION.fullmatch(version):
        raise Refused(f"{version} is not a version such as 1.2.3")
    source = _read(root, SOURCE)
    present = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if present is None:
        raise Refused(f"{SOURCE} has no __version__")
    if _numbers(version) < _numbers(present[1]):
        raise Refused(f"{version} is older than {present[1]}")
    heading = f"## {version}, not released\n"
    changelog = _read(root, CHANGELOG)
    if heading not in changelog:
        raise Refused(f"{CHANGELOG} has no section '{heading.strip()}'")
    package, lock = json.loads(_read(root, PACKAGE)), json.loads(_read(root, LOCK))
    package["version"] = lock["version"] = lock["packages"][""]["version"] = version
    new = {
        SOURCE: source.replace(present[0], f'__version__ = "{version}"'),
        PACKAGE: _json(package),
        LOCK: _json(lock),
        CHANGELOG: changelog.replace(heading, f"## {version}, {day.isoformat()}\n"),
    }
    return {path: text for path, text in new.items() if text != _read(root, path)}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _read(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def _json(value: object) -> str:
    """As npm writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def git(*words: str) -> str:
    """What a git command prints in the repository. Raises CalledProcessError."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def check_repository(version: str) -> None:
    """Raises Refused where the branch is not main, something is not committed, or the tag exists."""
    if (branch := git("rev-parse", "--abbrev-ref", "HEAD")) != "main":
        raise Refused(f"releases are made on main, not on {branch}")
    if git("status", "--porcelain"):
        raise Refused("there are changes that are not committed")
    if git("tag", "--list", f"v{version}"):
        raise Refused(f"the tag v{version} exists already")


def shown(root: Path, new: dict[str, str]) -> str:
    """The changes as a unified diff."""
    parts = []
    for path, text in new.items():
        before, after = _read(root, path).splitlines(True), text.splitlines(True)
        parts += difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", n=1)
    return "".join(parts)


def make(root: Path, new: dict[str, str], commands: Sequence[Sequence[str]]) -> None:
    """Write the files and run the commands in turn. If one fails, the files are as before, and
    CalledProcessError says which."""
    before = {path: _read(root, path) for path in new}
    try:
        for path, text in new.items():
            (root / path).write_text(text, encoding="utf-8")
        for command in commands:
            subprocess.run(command, cwd=root, check=True)
    except BaseException:
        for path, text in before.items():
            (root / path).write_text(text, encoding="utf-8")
        raise


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 with the reason on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="show the changes and commands, do nothing")
    given = parser.parse_args(words)
    tag = f"v{given.version}"
    finish = (("git", "commit", "--all", "--message", f"Release {given.version}"), ("git", "tag", tag))
    try:
        new = changes(ROOT, given.version, datetime.date.today())
        if given.dry_run:
            print(shown(ROOT, new), *(" ".join(one) for one in (*COMMANDS, *finish)), sep="\n")
            return 0
        check_repository(given.version)
        make(ROOT, new, (*COMMANDS, *finish))
    except (Refused, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    upload = f"twine upload dist/python/warpline-{given.version}*"  # not those of earlier releases
    print(f"Made. To publish: git push origin main {tag}; {upload}; vsce publish --packagePath dist/*.vsix")
    print("Before the first release fill in what CONTRIBUTING.md says under 'Publish the extension'.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
