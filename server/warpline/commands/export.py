"""Write a run (the newest when RUN is left out) for other tools.

--perfetto FILE: the original events, with tracks for steps, source lines and findings beside them, for
ui.perfetto.dev and chrome://tracing. Packed where FILE ends in .gz.
--tensorboard DIR: a log folder with scalars, the hottest lines, the findings, and a trace for the
profiler plugin.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from warpline.commands import run_argument
from warpline.model.problem import Problem


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--perfetto",
        metavar="FILE",
        help=("the trace with tracks for lines and findings (.json or .json.gz)"),
    )
    parser.add_argument("--tensorboard", metavar="DIR", help="a log folder for `tensorboard --logdir`")
    run_argument.configure(parser)


def run(options: argparse.Namespace) -> int:
    if not (options.perfetto or options.tensorboard):
        raise Problem("say what to write: --perfetto FILE or --tensorboard DIR")
    if options.perfetto and not Path(options.perfetto).absolute().parent.is_dir():
        raise Problem(f"cannot write {options.perfetto}: there is no such folder")
    run_folder = run_argument.find(options.run)
    from warpline import pipeline, runs
    from warpline.export import chrome, tensorboard
    from warpline.export.tracks import Tracks
    from warpline.wire.run import TRACE

    report, trace_file = pipeline.report_of(run_folder), runs.part(run_folder, TRACE)
    scene = pipeline.scene_of(run_folder)
    base_ns = chrome.base_ns(trace_file)
    if options.perfetto:
        tracks = Tracks(scene, report, base_ns, str(Path.cwd()))
        chrome.write(trace_file, tracks.events(), Path(options.perfetto))
        print(f"wrote {options.perfetto}: open it on https://ui.perfetto.dev")
    if options.tensorboard:
        folder, manifest = Path(options.tensorboard) / run_folder.name, scene.trace.manifest
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Problem(f"cannot write {folder}: {(error.strerror or str(error)).lower()}") from None
        tensorboard.write(folder, report, manifest.timed_ns, manifest.created_ns / 1e9)
        marks = tensorboard.steps(scene.trace, base_ns, scene.trace.names)
        place = folder / f"warpline.{manifest.created_ns // 10**6}.pt.trace.json.gz"
        chrome.write(trace_file, marks, place)
        print(f"wrote {folder}: tensorboard --logdir {options.tensorboard}")
    return 0
