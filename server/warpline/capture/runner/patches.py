"""Attributes replaced for a while."""

import functools


class Patches:
    def __init__(self):
        self.saved = []

    def replace(self, owner, name, make, inherited=False):
        """``owner.name = make(original)``; nothing happens where this torch has no such attribute.

        ``inherited``: the original may come from a base class.
        """
        original = vars(owner).get(name)
        found = getattr(owner, name, None) if original is None and inherited else original
        if found is None:
            return
        plain = found.__func__ if isinstance(found, staticmethod) else found
        made = functools.wraps(plain)(make(plain))
        if isinstance(found, staticmethod):
            made = staticmethod(made)
        self.saved.append((owner, name, original, made))
        setattr(owner, name, made)

    def restore(self):
        """Put the originals back, except where somebody else has replaced ours meanwhile."""
        while self.saved:
            owner, name, original, made = self.saved.pop()
            if vars(owner).get(name) is not made:
                continue
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
