"""Ranges that the script marks with NVTX become ranges of torch's recorder, named ``nvtx:DOMAIN:NAME``.

Both ways are covered: ``torch.cuda.nvtx`` and the ``nvtx`` package (annotate, push and pop, domains).
"""

from __future__ import annotations

import functools
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..imports import when_imported
from ..patches import Patches
from .nvtxdomains import WatchedDomain

if TYPE_CHECKING:
    from ..patches import Function

DEFAULT_DOMAIN = "NVTX"


class UserMarks:
    """Installed from the start, since scripts import the functions; silent until ``recording``."""

    def __init__(self) -> None:
        self.recording = False
        self.patches = Patches()
        self.local = threading.local()

    def install(self, torch: ModuleType) -> None:
        """Watch ``torch.cuda.nvtx``, and the ``nvtx`` package as soon as it is imported."""
        self.record_function = torch.autograd.profiler.record_function
        module = torch.cuda.nvtx
        for name in ("range_push", "range_pop"):
            self.patches.replace(module, name, self._pushing if name == "range_push" else self._popping)
        when_imported("nvtx", self._watch_package)

    def remove(self) -> None:
        """Put the originals back."""
        self.recording = False
        self.patches.restore()

    def _watch_package(self, package: ModuleType) -> None:
        nvtx: Any = getattr(package, "nvtx", None)
        if not hasattr(nvtx, "annotate"):  # something else of that name
            return
        for owner in (package, nvtx):
            self.patches.replace(owner, "push_range", self._pushing)
            self.patches.replace(owner, "pop_range", self._popping)
        self.patches.replace(package, "get_domain", self._giving)
        annotate = nvtx.annotate
        self.patches.replace(annotate, "__init__", self._make_init)
        self.patches.replace(annotate, "__enter__", self._make_enter)
        self.patches.replace(annotate, "__exit__", self._make_exit)
        self.patches.replace(annotate, "__call__", self._make_call)

    def _push(self, message: str | None, domain: str | None) -> None:
        if not self.recording:
            return
        entry = self.record_function("nvtx:%s:%s" % (domain or DEFAULT_DOMAIN, message))
        entry.__enter__()
        self._stacks().setdefault(domain or DEFAULT_DOMAIN, []).append(entry)

    def _pop(self, domain: str | None) -> None:
        stack = self._stacks().get(domain or DEFAULT_DOMAIN) if self.recording else None
        if stack:
            stack.pop().__exit__(None, None, None)

    def _stacks(self) -> dict[str, list[Any]]:
        stacks: dict[str, list[Any]] | None = getattr(self.local, "stacks", None)
        if stacks is None:
            stacks = self.local.stacks = {}
        return stacks

    def _pushing(self, original: Function) -> Function:
        def push(
            message: Any = None, color: Any = None, domain: Any = None, *arguments: Any, **named: Any
        ) -> Any:
            self._push(message, domain)
            if color is None and domain is None and not arguments and not named:
                return original(message)
            return original(message, color, domain, *arguments, **named)

        return push

    def _popping(self, original: Function) -> Function:
        def pop(*arguments: Any, **named: Any) -> Any:
            self._pop(named.get("domain") or (arguments[0] if arguments else None))
            return original(*arguments, **named)

        return pop

    def _giving(self, original: Function) -> Function:
        def get_domain(name: str | None = None) -> Any:
            return WatchedDomain(original(name), name, self._push, self._pop)

        return get_domain

    def _make_init(self, original: Function) -> Function:
        def __init__(
            annotation: Any,
            message: Any = None,
            color: Any = None,
            domain: Any = None,
            *arguments: Any,
            **named: Any,
        ) -> None:
            annotation.warpline_mark = message, domain
            original(annotation, message, color, domain, *arguments, **named)

        return __init__

    def _make_enter(self, original: Function) -> Function:
        def __enter__(annotation: Any) -> Any:
            message, domain = annotation.warpline_mark
            self._push(message or "", domain)
            return original(annotation)

        return __enter__

    def _make_exit(self, original: Function) -> Function:
        def __exit__(annotation: Any, *error: Any) -> Any:
            self._pop(annotation.warpline_mark[1])
            return original(annotation, *error)

        return __exit__

    def _make_call(self, original: Function) -> Function:
        def __call__(annotation: Any, function: Function) -> Function:
            made = original(annotation, function)
            message, domain = annotation.warpline_mark

            @functools.wraps(function)
            def marked(*arguments: Any, **named: Any) -> Any:
                self._push(message or function.__name__, domain)
                try:
                    return made(*arguments, **named)
                finally:
                    self._pop(domain)

            return marked

        return __call__
