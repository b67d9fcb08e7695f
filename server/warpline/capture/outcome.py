"""How a target ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from warpline.model import units
from warpline.wire.messages import Ended, Looked, Replaced
from warpline.wire.run import Manifest, Request

#: If child processes used at least this share of the run's time as CPU time, they did most of the work.
CHILDREN_SHARE = 0.5
#: Or if they used at least this, and more than the script itself: on a busy machine much of the time passes
#: while neither runs. Chosen, not fitted.
CHILDREN_LEAST_S = 1.0


@dataclass(slots=True)
class Outcome:
    ready: bool = False  # everything that was asked for has been written
    ended: Ended | None = None  # the runner's own last message
    looked: Looked | None = None  # what was seen of its loops, if that was asked
    replaced: str = ""  # the program that a process of it became by os.exec…; it is not measured
    stepped: bool = False  # a step was seen, even if the runner could not say how many
    compiling: bool = False  # its last message says that it compiles

    def hear(self, message: Looked | Replaced) -> None:
        """Keep what a process told of its loops, or which program it became."""
        if isinstance(message, Looked):
            self.looked = message
        else:
            self.replaced = message.program

    @property
    def last(self) -> Ended:
        """How the last process ended; all defaults where none ended."""
        return self.ended or Ended()

    @property
    def clean(self) -> bool:
        """The script came to its end by itself, without an error."""
        return self.last.clean and self.last.torch

    @property
    def steps(self) -> int:
        """How many steps the last process made."""
        return self.last.steps

    @property
    def boundaries(self) -> int:
        """Step boundaries that could be used; the first steps pass before it is known what marks a step."""
        return self.last.boundaries

    @property
    def held(self) -> int:
        """Batches or forwards that were not counted as steps, because an optimizer existed and its steps were
        waited for."""
        return self.last.held

    @property
    def beat(self) -> str | None:
        """What marked the steps ("optimizer", …), if there was only one of that kind; else None."""
        return self.last.beat

    @property
    def whole_ns(self) -> int:
        """How long the last process ran the script, in ns."""
        return self.last.whole_ns

    @property
    def elsewhere(self) -> str:
        """A note when most of the work was done by processes that the script started, else empty."""
        seconds = self.last.children_s
        busy = seconds >= CHILDREN_SHARE * self.whole_ns / 1e9
        if not busy and seconds < max(CHILDREN_LEAST_S, self.last.own_s):
            return ""
        return (
            f"processes that the script started used {units.ms(seconds * 1000)} of CPU time, but "
            "only the script's own process is measured: to measure a training process, profile it "
            "directly, or use --launcher 'torchrun …'"
        )

    @property
    def how(self) -> str:
        """How a failed script ended, as a verb: "failed with …" or "exited with status …"."""
        error, status = self.last.error, self.last.status
        return (
            f"failed with {error}" if error else f"exited with status {status if status is not None else 1}"
        )

    @property
    def hungry(self) -> bool:
        """Whether it failed because its standard input was empty."""
        return self.last.error == "EOFError"

    def amend(self, manifest: Path, name: str) -> None:
        """If the script failed after it was measured, note that in the manifest."""
        if self.ended is None or self.ended.clean:
            return
        status = self.last.status
        told = msgspec.json.decode(manifest.read_bytes(), type=Manifest)
        told = replace(
            told,
            exit_status=status if status is not None else 1,
            notes=(*told.notes, f"{name} {self.how} after it was measured"),
        )
        scratch = manifest.with_name(".manifest")
        scratch.write_bytes(msgspec.json.encode(told))
        scratch.replace(manifest)

    def failure(self, name: str, returncode: int | None) -> str:
        """One line: why nothing was measured."""
        if self.last.clean:
            return f"{name} ended without importing torch: there is nothing to measure"
        done = "1 step" if self.steps == 1 else f"{self.steps} steps"
        when = f"after {done}, before it was measured" if self.steps else "before its first step"
        if self.ended is None and self.replaced:
            return f"{name} replaced itself with {self.replaced} (os.exec…), which is not measured"
        if self.ended is None and returncode is not None:
            when = "before it was measured" if self.stepped else "before its first step"
            if returncode < 0:
                return f"{name} was killed by {signal.Signals(-returncode).name} {when}"
            return f"{name} ended abruptly with exit status {returncode} {when}"
        if self.last.error:
            detail = self.last.message.partition("\n")[0]
            return f"{name} failed with {self.last.error}{': ' + detail if detail else ''}, {when}"
        status = self.last.status
        return f"{name} exited with status {returncode if status is None else status} {when}"

    def remedy(self, request: Request) -> str:
        """A hint for common failures at a script's start, beginning with "; "; else empty."""
        if self.ended is None and request.launcher:
            return f"; {request.launcher[0]} started it and may have printed the reason"
        said = f"{self.last.error}: {self.last.message}"
        if said.startswith("ModuleNotFoundError: "):
            return f"; it ran in {request.python}; --python chooses another interpreter"
        if said.startswith("ImportError: attempted relative import with no known parent package"):
            return f"; run a file of a package as a module: -m {_module(Path(request.target))}"
        return ""


def _module(script: Path) -> str:
    """The module name with which ``python -m`` runs a file from the folder above its package."""
    name, folder = script.stem, script.parent
    while (folder / "__init__.py").is_file():
        name, folder = f"{folder.name}.{name}", folder.parent
    return name if "." in name else f"PACKAGE.{name}"
