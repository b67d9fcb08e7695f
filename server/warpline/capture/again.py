"""What to do with a script that ended with too few steps for its windows: run it once more."""

from __future__ import annotations

from dataclasses import replace

from warpline.capture.outcome import Outcome
from warpline.wire.control import Purpose, Windows
from warpline.wire.run import Request

#: The fewest step boundaries with which steps can be measured: one step is timed and one captured. With
#: fewer, the script is measured as a whole.
LEAST_BOUNDARIES = 3
#: From so many steps on, there is also a plain warm-up step, and a search for quick loops.
ROOM_FOR_WARMUP, ROOM_FOR_LOOPS = 8, 12
#: And the survey is after the timing, as usual: early steps may be of another loop. It takes two steps.
ROOM_FOR_SURVEY = 40
#: Of so many steps one warms up, up to MOST_WARMUP: these tell the host's own time (windows/stages).
EACH_WARMUP, MOST_WARMUP = 10, 10
#: If at least so many steps are left for timing, half of them are sampled instead (CPU).
ROOM_FOR_SAMPLES = 20


def usable(outcome: Outcome) -> int:
    """Step boundaries that a second run can use. If the beat (what marks a step) is already known, these
    include the first steps, which the first run needed to find it."""
    return outcome.steps if outcome.beat else outcome.boundaries


#: How often a script may run. The first run has the usual windows. If the number of steps differs between
#: runs, the second has windows for all steps of the first, the third for half of the steps of the second,
#: and the fourth measures the script as a whole.
RUNS = 4
COUNTED = ("", "a second", "a third", "a fourth")


def next_try(request: Request, outcome: Outcome, before: int) -> tuple[Purpose, Windows, tuple[str, ...]]:
    """The next run of a script that was run ``before`` times: its purpose, its windows, and the notes that
    say so. ``outcome`` is how the last run ended."""
    if before == 1:
        return second_try(request, outcome)
    if before == RUNS - 1 or usable(outcome) < 2 * LEAST_BOUNDARIES:
        note = (
            "the number of steps differs between runs of the script: it was run a "
            f"{COUNTED[before]} time and measured as a whole"
        )
        return Purpose.WHOLE, Windows(whole_ns=(outcome.whole_ns,), muted=True), (note,)
    note = (
        f"the script made different steps in its second run: it was run {COUNTED[before]} "
        f"time, and half of its {outcome.steps} steps were measured"
    )
    windows = shared_out(usable(outcome) // 2, request.steps)
    return Purpose.PROFILE, replace(windows, patient=True, beat=outcome.beat), (note,)


def second_try(request: Request, outcome: Outcome) -> tuple[Purpose, Windows, tuple[str, ...]]:
    """The second run of a script: its purpose, its windows, and the notes that say so."""
    steps, boundaries, beat = outcome.steps, usable(outcome), outcome.beat
    patient = boundaries >= LEAST_BOUNDARIES or outcome.held < LEAST_BOUNDARIES
    if not patient:  # it has an optimizer, and never trains with it
        steps, boundaries, beat = outcome.held + 1, outcome.held, None
    if boundaries < LEAST_BOUNDARIES:
        made = "no steps" if steps == 0 else "only 1 step" if steps == 1 else f"only {steps} steps"
        first = ", including what only its first step does" if steps else ""
        note = f"the script makes {made}: it was run a second time and measured as a whole{first}"
        notes = (note, outcome.elsewhere) if outcome.elsewhere else (note,)
        return Purpose.WHOLE, Windows(whole_ns=(outcome.whole_ns,), muted=True), notes
    how = f"makes only {steps} steps" if outcome.clean else f"{outcome.how} after {steps} steps"
    note = f"the script {how}: it was run a second time, with shorter windows"
    windows = replace(shared_out(boundaries - 1, request.steps), patient=patient, beat=beat)
    return Purpose.PROFILE, windows, (note,)


def shared_out(steps: int, captured: int) -> Windows:
    """Windows for ``steps`` whole steps (two or more); at most ``captured`` of them are captured.

    In order of importance: one step is timed, one captured, one surveyed (of few, it is the warm-up too), and
    one rehearses the capture. Of many steps some warm up; of the rest, more are timed than captured. If none
    is left for the survey, it covers part of the step before the windows, from its first batch or forward on.
    """
    survey, rehearse, late = steps >= 3, steps >= 4, steps >= ROOM_FOR_SURVEY
    warmup = min(MOST_WARMUP, max(1, steps // EACH_WARMUP)) if steps >= ROOM_FOR_WARMUP else 0
    look = steps >= ROOM_FOR_LOOPS
    left = steps - survey - late - rehearse - warmup - 2 * look
    captured = max(1, min(captured, (left + 1) // 3))
    left -= captured
    sampled = left // 2 if left >= ROOM_FOR_SAMPLES else 0
    return Windows(
        warmup,
        left - sampled,
        captured,
        sampled=sampled,
        survey=late,
        survey_first=survey and not late,
        survey_at_once=not survey,
        look=look,
        rehearse=rehearse,
        muted=True,
    )


def only_timed(windows: Windows) -> Windows:
    """The windows of a run over the same steps that times them and captures none."""
    more = (windows.sampled or 0) + windows.captured + windows.rehearse + 2 * (windows.look + windows.survey)
    warmup = (windows.warmup or 0) + windows.survey_first
    return replace(
        windows, warmup=warmup, timed=(windows.timed or 1) + more, survey_first=False, survey_at_once=False
    )
