"""Source files read and written without changing what an edit does not name: encoding, byte order
mark, line ends and permissions stay, and a file is replaced whole or not at all."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path

from warpline.model.problem import Problem


@dataclass(frozen=True, slots=True)
class File:
    """A source file as text. ``text`` has no byte order mark and the line ends of the file."""

    path: Path
    text: str
    encoding: str
    mark: bytes
    content: bytes


def read(path: str | Path) -> File:
    """Read a Python file in the encoding that it declares. Raises Problem."""
    place = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    try:
        content = place.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        return File(place, content[len(mark) :].decode(encoding), encoding, mark, content)
    except OSError as error:
        raise Problem(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Problem(f"cannot read {path} as text: {error}") from None


def text_of(path: str) -> str | None:
    """The text of a file now, None when it cannot be read."""
    try:
        return read(path).text
    except Problem:
        return None


def write(file: File, text: str) -> None:
    """Put ``text`` in the place of ``file``. Raises Problem when it is read-only, cannot be written,
    or changed since it was read."""
    try:
        mode = stat.S_IMODE(file.path.stat().st_mode)
        # Root may write anything: what the user marked as read-only is left alone all the same.
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(file.path, os.W_OK):
            raise Problem(f"{file.path} is not writable and was not changed")
        if file.path.read_bytes() != file.content:
            raise Problem(f"{file.path} changed in the meantime and was not edited")
        content = file.mark + text.encode(file.encoding)
        _replace(file.path, content, mode)
    except OSError as error:
        raise Problem(f"cannot write {file.path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeEncodeError:
        raise Problem(f"{file.path} is in {file.encoding}, which cannot hold the new text") from None


def _replace(path: Path, content: bytes, mode: int) -> None:
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        Path(scratch).chmod(mode)
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
