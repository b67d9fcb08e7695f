"""Builds the contract's report from a profile and its diagnosis."""

from __future__ import annotations

from dataclasses import fields

from warpline.diagnosis.diagnose import Diagnosis
from warpline.model.profile import LineCost, Profile
from warpline.model.report import FORMAT, Device, Environment, KernelUse, Line, OpUse, Plan, Report

#: Fields that a LineCost and a Line share by name, those made again left out.
_SHARED = tuple(field.name for field in fields(Line) if field.name not in ("kernels", "ops"))


def report(profile: Profile, diagnosis: Diagnosis, plan: Plan | None = None) -> Report:
    """All of ``profile`` that the contract shows, with the findings and the order to fix them in."""
    manifest = profile.manifest
    device = Device(manifest.device.kind, manifest.device.name, manifest.device.count)
    return Report(
        format=FORMAT,
        script=manifest.script,
        argv=manifest.argv,
        environment=Environment(manifest.python_version, manifest.torch_version, device),
        steps=profile.steps,
        lines=tuple(_line(cost) for cost in profile.lines),
        unattributed=profile.unattributed,
        attributed=profile.attributed,
        findings=diagnosis.findings,
        notes=tuple(dict.fromkeys((*manifest.notes, *profile.notes, *diagnosis.notes))),
        plan=plan,
        workers=profile.facts.workers,
        composition=profile.composition,
        functions=profile.functions,
    )


def _line(cost: LineCost) -> Line:
    kernels: dict[tuple[str, str], KernelUse] = {}
    for kernel in cost.kernels:  # the contract has one entry per name and phase, whatever the grid
        known = kernels.get((kernel.name, kernel.phase))
        kernels[kernel.name, kernel.phase] = KernelUse(
            kernel.name,
            kernel.phase,
            kernel.count + (known.count if known else 0.0),
            kernel.device_ms + (known.device_ms if known else 0.0),
        )
    ops = tuple(OpUse(op.name, op.phase, op.count, op.device_ms, op.shapes) for op in cost.ops)
    shared = {name: getattr(cost, name) for name in _SHARED}
    return Line(**shared, kernels=tuple(kernels.values()), ops=ops)
