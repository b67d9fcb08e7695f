"""Attributes replaced for a while."""

import functools


class Patches:
    def __init__(self):
        self.saved = []

    def replace(self, owner, name, make):
        """``owner.name = make(original)``; nothing happens where this torch has no such attribute."""
        original = vars(owner).get(name)
        if original is None:
            return
        plain = original.__func__ if isinstance(original, staticmethod) else original
        made = functools.wraps(plain)(make(plain))
        if isinstance(original, staticmethod):
            made = staticmethod(made)
        self.saved.append((owner, name, original, made))
        setattr(owner, name, made)

    def restore(self):
        """Put the originals back, except where somebody else has replaced ours meanwhile."""
        while self.saved:
            owner, name, original, made = self.saved.pop()
            if vars(owner).get(name) is made:
                setattr(owner, name, original)
