"""Which tests run on the same worker, so that what they share is made once.

These are all tests of a file and all files of a group. A test that runs alone belongs to none. Workers take
them in the order of the collection (``--no-loadscope-reorder``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.gpu import sharing
from tests.processes import ALONE

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

#: They read the reports of all recorded runs. A report is made by who asks first, and takes half a second.
RECORDED = frozenset(
    f"tests/{name}.py"
    for name in (
        "captures/test_recorded",
        "captures/test_roofline",
        "rules/test_on_recorded_runs",
        "simulate/test_recorded_gpu",
        "simulate/test_recorded_runs",
        "view/test_kernel_name",
    )
)

#: They build the extension in ``dist/``: at the same time one would pack what the other has half written.
EXTENSION = frozenset({"tests/editors/test_package.py", "tests/editors/test_vscode.py"})


def scope(test: str) -> str:
    """Tests with the same scope run on the same worker, one after the other."""
    file, _, _ = test.partition("::")
    if file.startswith("tests/gpu/"):
        return sharing.group(test)
    if test.partition("[")[0] in ALONE:
        return test
    return "recorded" if file in RECORDED else "extension" if file in EXTENSION else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

        def _reschedule(self, node: WorkerController) -> None:
            """A worker needs to know one test ahead; more would wait there while another one is idle."""
            if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)

    return ByScope(config, log)
