"""From a profile to findings: run the rules, rank, merge, suppress, and make their edits."""

from warpline.diagnosis.diagnose import Diagnosis, diagnose
from warpline.diagnosis.kernel_at import kernel_at
from warpline.diagnosis.plan import plan
from warpline.diagnosis.recompute import fixes
from warpline.diagnosis.report import report
from warpline.diagnosis.together import Change, Skipped, Together, together

__all__ = [
    "Change",
    "Diagnosis",
    "Skipped",
    "Together",
    "diagnose",
    "fixes",
    "kernel_at",
    "plan",
    "report",
    "together",
]
