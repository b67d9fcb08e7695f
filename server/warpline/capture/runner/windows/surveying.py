"""The survey of one step: what it does, without its times."""

from __future__ import annotations

from ..device import kinds
from .capturing import TRIES, Capture
from .stages import Stage


class Survey(Stage):
    """Surveys one step, which may be slow. With a device, two steps: the first times the host's waits for the
    device, without recording operators, because a host slowed by that would not wait. The next one records
    operators, and so does the one after it, for what it computes again."""

    tries = 0
    waits = again = False

    def begin(self) -> None:
        self.waits = kinds.used(self.session.torch).accelerated
        if not self.session.observers.start_survey(operators=not self.waits):
            self.session.go(Capture)

    def tick(self) -> None:
        self.session.boundaries += 1
        other = self.session.classes.is_other(self.session.observers.signals.take())
        if self.again:
            self.session.observers.compare(whole=not other)
            self.session.go(Capture)
            return
        self.tries += 1
        other = other and self.tries < TRIES
        self.session.observers.stop_survey(watching=not other and not self.waits)
        if other:
            self.begin()
            return
        if self.waits:
            self.waits = False
            self.session.observers.start_dataflow()
            return
        if self.session.observers.record_again():
            self.again = True
            return
        self.session.go(Capture)

    def can_restart(self, better: bool) -> bool:
        return better

    def forked(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        if self.again:
            self.session.observers.compare(whole=False)
        else:
            self.session.observers.stop_survey()


class FirstSurvey(Stage):
    """A survey before the timing, for scripts with few steps. It is also the last step of the warm-up."""

    def begin(self) -> None:
        self.watching = self.session.observers.start_survey()

    def tick(self) -> None:
        self.session.boundaries += 1
        self.abandon()
        self.session.go(self.session.timing)

    def can_restart(self, better: bool) -> bool:
        return True

    def forked(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        if self.watching:
            self.session.observers.stop_survey()
