"""Records what happens before the steps: lines that ran, files that were read, settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional

from .births.arguments import Arguments
from .births.settings import Settings
from .births.syntax import Files
from .lines.executed import Executed
from .lines.names import QualifiedNames
from .lines.userfiles import UserFiles
from .windows.stages import Stage, Waiting, Warmup

if TYPE_CHECKING:
    from ...wire.run import Request
    from .lines.locations import Locations
    from .texts import Texts


class Before:
    """``follow``: False if steps are only timed; then nothing is recorded before them."""

    def __init__(self, request: Request, texts: Texts, follow: bool) -> None:
        here = os.getcwd()
        folder = here if request.module else os.path.dirname(os.path.realpath(request.target))
        self.user_files = UserFiles(dict.fromkeys((folder, here)), request.include)
        self.names = QualifiedNames(texts.text)
        self.executed = Executed(self.user_files)
        self.arguments: Optional[Arguments] = None
        self.settings: Optional[Settings] = None
        if follow:
            self.arguments = Arguments(self.user_files, self.names, self.executed, Files(texts.text))
            self.settings = Settings(self.arguments.frames)

    def start(self) -> None:
        """Begin; called right before the script's first line."""
        if self.arguments is not None and self.settings is not None:
            self.arguments.loaded.install()
            self.settings.install()
            self.executed.start()

    def at_stage(self, stage: type[Stage]) -> None:
        """A stage begins. While steps are timed or captured, nothing of this may run."""
        if stage is Waiting:
            return
        self.executed.first_step()
        if stage is not Warmup:
            self.executed.stop()
        if self.arguments is not None:
            self.arguments.loaded.remove()

    def add_captured(self, locations: Locations) -> None:
        """Note the lines of the captured steps as run, too."""
        files = list(locations.files)
        for file, line, _ in locations.table:
            if file >= 0 and self.executed.order:
                self.executed.add(files[file], line)

    def facts(self) -> Dict[str, Any]:
        """What was recorded, as fields of ``wire.run.Facts``."""
        settings = self.settings.found() if self.settings is not None else []
        return {"settings": settings, "executed": self.executed.as_dict()}

    def remove(self) -> None:
        """Remove the hooks. What was noted stays."""
        self.executed.stop()
        if self.arguments is not None and self.settings is not None:
            self.arguments.loaded.remove()
            self.settings.remove()
