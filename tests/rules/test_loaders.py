"""Where a loader's settings come from, and what the command line passes for them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import LoaderWorkers
from warpline.rulekit import Context, Draft
from warpline.rules.loader_without_workers import LoaderWithoutWorkers
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder

CODE = """\
import argparse
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("-j", "--num_workers", type=int, default=0)
args = parser.parse_args()
loader = DataLoader(dataset, num_workers=args.num_workers)  #> site loader num_workers=0
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
"""


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "comes from the option `--num_workers`."),
        (("--num_workers=0",), "the command line passes `--num_workers`: change it there."),
        (("-j", "0"), "the command line passes `-j`: change it there."),
    ],
)
def test_an_option_is_named_as_the_script_spells_it(argv: tuple[str, ...], words: str) -> None:
    example = read_example(CODE)
    profile = replace(example.profile, manifest=replace(example.profile.manifest, argv=argv))
    (draft,) = LoaderWithoutWorkers().find(Context(profile, profile.sources.get))
    assert draft.message.endswith(words)
    assert bool(draft.fixes) == (not argv)


SHORT_EPOCHS = """\
from torch.utils.data import DataLoader

def batches(data, workers):
    extra = %s
    return DataLoader(%s)  #> site loader %s

for epoch in range(40):
    for batch in batches(data, 6):  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
        train(batch)  #> cost device_ms=10
"""
_RESTARTS = "num_workers=6 persistent_workers=false batches_per_epoch=8 epochs_started=20 starts_timed=4"


@pytest.mark.parametrize(
    ("extra", "given", "line"),
    [
        ('{"num_workers": workers, "prefetch_factor": 4}', "data, 32, **extra", 4),
        ("dict(num_workers=workers)", "data, batch_size=32, **extra", 4),
        ('{"prefetch_factor": 4}', "data, 32, num_workers=workers", 5),
    ],
)
def test_the_workers_are_kept_where_their_number_is_written(extra: str, given: str, line: int) -> None:
    example = read_example(SHORT_EPOCHS % (extra, given, _RESTARTS))
    (draft,) = LoaderWorkersRestart().find(Context(example.profile, texts(example)))
    assert draft.line == line


#: `fit` iterates a loader for training and one for validation, and the timed steps were of training.
FIT = """\
from torch.utils.data import DataLoader
train = DataLoader(images, batch_size=32)  #> site loader num_workers=0 in_main_ms=40 wait_ms=40
held_out = DataLoader(others, batch_size=32)  #> site loader num_workers=0 in_main_ms=40
trainer.fit(model, train, held_out)  #> cost cpu_ms=40 idle_ms=40 loader_ms=40
"""


@pytest.mark.parametrize(("waited", "lines"), [({}, [2]), ({"wait_ms": 4.0}, [2, 3])])
def test_a_loader_of_which_the_timed_steps_took_no_batch(waited: dict[str, float], lines: list[int]) -> None:
    profile = read_example(FIT).profile
    sites = [replace(site, uses=((site.file, 4),)) for site in profile.facts.sites]
    sites = [replace(site, facts={**site.facts, **waited}) if site.line == 3 else site for site in sites]
    profile = replace(profile, facts=replace(profile.facts, sites=tuple(sites)))
    drafts = LoaderWithoutWorkers().find(Context(profile, profile.sources.get))
    assert [draft.place[1] for draft in drafts] == lines


CROWDED = """\
#> flags cpu_count=16 threads=16; steps step_ms=800; totals queued_ms={queued}; device kind={device}
from torch.utils.data import DataLoader
loader = DataLoader(mixtures, batch_size=96)
#^ site loader num_workers=0 batches_per_epoch=500 in_main_ms=700 in_main_busy={busy}
for batch in loader:  #> cost cpu_ms=700 idle_ms=700 loader_ms=700 stalled_ms={stalled}; use loader
    train(batch)  #> cost device_ms=100 step_ms=100
"""


@pytest.mark.parametrize(
    ("facts", "stalled", "workers"),
    [
        ({"stalled": 600.0}, 600.0, 2),
        ({"stalled": 440.0, "queued": 40.0}, 475.0, 5),  # of a step of 800 ms, 700 of it loading
        ({"stalled": 30.0}, 0.0, 14),  # too little to matter
        ({"stalled": 600.0, "busy": 0.3}, 0.0, 14),  # loading waits for something else, such as a disk
    ],
)
def test_what_loading_waits_for_cores_is_not_promised(
    facts: dict[str, float], stalled: float, workers: int
) -> None:
    known: dict[str, object] = {"queued": 0.0, "busy": 1.0, "device": "cuda"} | facts
    example = read_example(CROWDED.format(**known))
    (draft,) = LoaderWithoutWorkers().find(Context(example.profile, texts(example)))
    change = draft.change
    assert isinstance(change, LoaderWorkers)
    assert (change.stalled_ms, change.workers) == (pytest.approx(stalled), workers)
    shares = [one.value for one in draft.evidence if one.metric == "waits for cores"]
    assert shares == ([pytest.approx(stalled / 8)] if stalled else [])
    # As much of the present step as it would save of one without these waits.
    assert 1 - draft.saving_ms / 800 == pytest.approx(100 / (800 - stalled))


def test_on_a_cpu_all_of_the_step_waits_for_cores() -> None:
    code = CROWDED.format(queued=400.0, stalled=0.0, busy=1.0, device="cpu").replace(
        "threads=16", "threads=4"
    )
    example = read_example(code)
    (draft,) = LoaderWithoutWorkers().find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, LoaderWorkers)
    assert draft.change.stalled_ms == 0


THREADED = """\
#> flags cpu_count={cpus} threads={threads}; steps step_ms=100; device kind={device}
from torch.utils.data import DataLoader
loader = DataLoader(spectra, batch_size=32)
#^ site loader num_workers=0 batches_per_epoch=500 in_main_ms=40 in_main_beside={beside}
#^ also in_main_busy={busy}{tried}
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader{operators}
    train(batch)  #> cost device_ms=60 cpu_ms=60 step_ms=60
"""
#: Torch makes half of the batch, and its operators share their work out among threads.
STACKED = "; op aten::stack cpu_ms=20 count=1"
#: Torch makes each sample quickly, and its threads loop for more for a while.
SCALED = "; op aten::div cpu_ms=1 count=32 shapes=[[3,224,224],[]]"
SMALL = "; op aten::div cpu_ms=1 count=32 shapes=[[3,22,22],[]]"
ON_GPU = {"cpus": 16, "device": "cuda", "threads": 16}


@pytest.mark.parametrize(
    ("facts", "cores", "workers"),
    [
        ({"beside": 0.95}, 2, 0),
        ({"beside": 0.02}, 1, 1),
        ({"beside": 0.95, "threads": 2}, 1, 0),  # the step's own threads, which loop for a while
        ({"beside": 0.6, "busy": 0.1}, 0.16, 2),  # a disk
        ({"beside": 0.95, "busy": 0.4}, 2, 0),  # it shares the cores with other processes
        ({"beside": 1.02, "cpus": 8, "threads": 4}, 1, 2),
        ({"beside": 4.1, "cpus": 8, "threads": 4}, 2, 2),
        ({"beside": 3.1, **ON_GPU}, 4, 2),
        ({"beside": 15.0, **ON_GPU}, 16, 0),  # two workers would have to take turns
        ({"beside": 7.0, **ON_GPU, "operators": STACKED}, 1, 2),
        ({"beside": 14.0, **ON_GPU, "operators": SCALED}, 1, 2),
        ({"beside": 14.0, **ON_GPU, "operators": SMALL}, 15, 0),
        ({"beside": 14.0, **ON_GPU, "tried": 1.01}, 1, 2),
        ({"beside": 14.0, **ON_GPU, "operators": SCALED, "tried": 3.8}, 4, 2),
        ({"beside": 0.95, "busy": 0.4, "tried": 1.0}, 0.4, 2),
    ],
)
def test_libraries_that_loading_calls_have_threads_of_their_own(
    facts: dict[str, object], cores: float, workers: int
) -> None:
    known: dict[str, object] = {"cpus": 2, "threads": 1, "busy": 1.0, "device": "cpu", "operators": ""}
    tried = f" worker_cores={facts['tried']}" if "tried" in facts else ""
    example = read_example(THREADED.format(**known | facts | {"tried": tried}))
    (draft,) = LoaderWithoutWorkers().find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, LoaderWorkers)
    assert draft.change.cores == pytest.approx(cores)
    assert draft.unseen == (workers == 0)
    assert (draft.saving_ms > 0) == (workers > 0)
    if workers:
        assert draft.change.workers == workers
    taken = cores > 1 and not workers
    assert ("keeps" in draft.message and not draft.fixes) == taken


IN_A_TEXT = """\
SETTINGS = '''
clips: 96
{written}
'''
conf = parse(SETTINGS)
loader = DataLoader(dataset, num_workers=conf["workers"]{more})
#^ site loader num_workers=0 batches_per_epoch=500
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
"""


def in_a_text(written: str, more: str = "") -> tuple[str, Draft]:
    example = read_example(IN_A_TEXT.format(written=written, more=more))
    (site,) = example.profile.facts.sites
    column = written.index(":") + 2
    held = Holder("text", FILE, 3, column, "workers")
    arguments = (
        Argument("num_workers", 0, holder=held),
        Argument("persistent_workers", False, passed=False),
    )
    facts = replace(example.profile.facts, sites=(replace(site, arguments=arguments),))
    (draft,) = LoaderWithoutWorkers().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert draft.line == 3
    return example.text, draft


@pytest.mark.parametrize(
    ("written", "fixed"),
    [("workers: 0  # of 16", "workers: 9  # of 16"), ("more: 0, workers: 0", "more: 9, workers: 0")],
)
def test_a_number_in_a_text_is_changed_there(written: str, fixed: str) -> None:
    text, draft = in_a_text(written)
    changed = apply(text, draft.fixes[0].edits)
    workers = re.search(r"persistent_workers=(.*)\)", changed)
    assert workers is not None and workers[1] == 'conf["workers"] > 0'
    number = re.search(r"num_workers=(\d+) is enough", draft.message)
    assert number is not None
    assert fixed.replace("9", number[1]) in changed


def test_what_the_call_unpacks_may_have_the_other_argument() -> None:
    text, draft = in_a_text("workers: 0", ", **extra")
    assert "persistent_workers" not in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize("written", ["workers: 04", "workers: none"])
def test_a_text_that_changed_since_is_left(written: str) -> None:
    _, draft = in_a_text(written)
    assert not draft.fixes
