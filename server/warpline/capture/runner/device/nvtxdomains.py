"""Domains of the ``nvtx`` package: objects with methods of their own, made in C, that cannot be replaced.

``get_domain`` gives a stand-in that passes everything on. Where no tool listens, the package itself makes
attributes of nothing (None), so the message is kept beside them.
"""

from __future__ import annotations

from typing import Any


class WatchedDomain:
    """``push(message, domain)`` and ``pop(domain)`` are told of its ranges."""

    def __init__(self, domain: Any, name: str | None, push: Any, pop: Any) -> None:
        self.warpline = domain, name, push, pop

    def __getattr__(self, name: str) -> Any:
        return getattr(self.warpline[0], name)

    def get_event_attributes(self, message: Any = None, *arguments: Any, **named: Any) -> Any:
        made = self.warpline[0].get_event_attributes(message, *arguments, **named)
        return WatchedAttributes(made, message)

    def set_event_attributes(self, attributes: Any, **named: Any) -> Any:
        if "message" in named and isinstance(attributes, WatchedAttributes):
            object.__setattr__(attributes, "warpline_message", named["message"])
        return self.warpline[0].set_event_attributes(_plain(attributes), **named)

    def push_range(self, *attributes: Any, **named: Any) -> Any:
        """Also opens a range of torch's recorder, named by the message."""
        domain, name, push, _ = self.warpline
        message = named.get("message") or getattr(
            attributes[0] if attributes else None, "warpline_message", ""
        )
        push(getattr(message, "string", message) or "", name)
        return domain.push_range(*map(_plain, attributes), **named)

    def pop_range(self) -> Any:
        """Also closes the range of torch's recorder."""
        domain, name, _, pop = self.warpline
        pop(name)
        return domain.pop_range()

    def start_range(self, *attributes: Any, **named: Any) -> Any:
        return self.warpline[0].start_range(*map(_plain, attributes), **named)

    def mark(self, *attributes: Any, **named: Any) -> Any:
        return self.warpline[0].mark(*map(_plain, attributes), **named)


class WatchedAttributes:
    """Event attributes, and the message that they were made with."""

    def __init__(self, made: Any, message: Any) -> None:
        object.__setattr__(self, "warpline_made", made)
        object.__setattr__(self, "warpline_message", message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.warpline_made, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "message":
            object.__setattr__(self, "warpline_message", value)
        if self.warpline_made is not None:
            setattr(self.warpline_made, name, value)


def _plain(attributes: Any) -> Any:
    return attributes.warpline_made if isinstance(attributes, WatchedAttributes) else attributes
