"""Which of the sources is the beat, and whose: several optimizers make one step, not many."""

import threading

from .sources import RANK, Forwards, Loaders, Marks, Optimizers, ProfilerSteps


class Steps:
    """Calls ``on_step()`` at each step's end, and ``on_restart()`` when a better beat was found.

    A source is chosen when one has been heard twice: whatever came in between belongs to one step,
    so the highest that was heard by then is taken. One of higher rank that comes later replaces it.
    """

    def __init__(self, on_step, on_restart, observers):
        self.on_step = on_step
        self.on_restart = on_restart
        self.sources = [Forwards(), Loaders(observers), Optimizers(observers), Marks(), ProfilerSteps()]
        self.installed = []
        self.counts = {}  # kind -> {key: times heard}
        self.order = {}  # kind -> keys in the order last heard
        self.chosen = None
        self.anchor = None
        self.thread = None
        self.held = None  # called with the kind: True while a chosen kind is not to be believed yet

    def install(self, torch):
        for source in self.sources:
            source.install(torch, self.heard)
            self.installed.append(source)

    def remove(self, but=None):
        """Take every source out of torch but the one named."""
        for source in [source for source in self.installed if source.kind != but]:
            source.remove()
            self.installed.remove(source)

    def heard(self, kind, key):
        if self.thread is None:
            self.thread = threading.get_ident()
        elif self.thread != threading.get_ident():
            return
        counts = self.counts.setdefault(kind, {})
        counts[key] = counts.get(key, 0) + 1
        order = self.order.setdefault(kind, [])
        if key in order:
            order.remove(key)
        order.append(key)
        if self.chosen is None:
            if counts[key] < 2:
                return
            self._choose(max(self.counts, key=RANK.__getitem__))
        elif RANK[kind] > RANK[self.chosen]:
            self._choose(kind)
        if kind != self.chosen:
            return
        if len(counts) > 1:
            self._find_anchor(counts, order)
        else:
            self.anchor = key
        if key == self.anchor and not (self.held and self.held(kind)):
            self.on_step()

    def _choose(self, kind):
        if self.chosen is not None:
            self.on_restart()
        self.chosen = kind
        self.anchor = None
        for lower in [source for source in self.installed if RANK[source.kind] < RANK[kind]]:
            lower.remove()
            self.installed.remove(lower)

    def _find_anchor(self, counts, order):
        """The key heard least often since they all are there; of equals, the one last in the cycle."""
        least = min(counts.values())
        anchor = [key for key in order if counts[key] == least][-1]
        if self.anchor is not None and anchor != self.anchor and anchor not in self._known:
            self.on_restart()
        self._known = set(counts)
        self.anchor = anchor
