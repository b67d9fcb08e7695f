"""loader-workers-restart where the loop over the epochs is in another function, or in another file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example
from warpline.rulekit import Context
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.wire.births import Executed

LOOP = "/example/run.py"
CODE = """\
#> workers batch_ms=100
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8)
#^ site loader num_workers=8 persistent_workers=false batches_per_epoch=200 start_ms=900 epochs_started=1

def train(model, loader):
    for batch in loader:  #> use loader
        model(batch)  #> cost step_ms=20 device_ms=20

class Fit:
    def epoch(self, model, *, loader=None):
        train(model, loader)

    def evaluate(self, model):
        self.epoch(model)
"""
IMPORTS = "from train import Fit, loader, train\n"
AGAIN = "fit = Fit()\nfor epoch in range(90):\n    fit.epoch(model, loader=loader)\n"


def is_found(loop: str, file: str = LOOP, ran: bool = True) -> bool:
    example = read_example(CODE)
    sources = {FILE: example.text, file: (example.text if file == FILE else "") + loop}
    files = {name: tuple(range(1, text.count("\n") + 1)) for name, text in sources.items()}
    if not ran:
        files[file] = files[file][:-1]  # the call in the loop did not
    profile = replace(
        example.profile,
        sources=sources,
        facts=replace(example.profile.facts, executed=Executed(files, complete=True)),
    )
    return bool(list(LoaderWorkersRestart().find(Context(profile, sources.get))))


@pytest.mark.parametrize(
    "loop",
    [
        IMPORTS + AGAIN,  # through a method and a function
        "from train import *\n" + AGAIN,
        IMPORTS + "while True:\n    train(model, loader)\n",
        "import train as fitting\nwhile True:\n    fitting.train(*given)\n",
        IMPORTS + "def run(model):\n    train(model, loader)\n\nfor one in models:\n    run(one)\n",
    ],
)
def test_a_loop_of_another_file_begins_the_loader_again(loop: str) -> None:
    assert is_found(loop)
    assert not is_found(loop, ran=False)


def test_so_does_one_of_the_same_file() -> None:
    assert is_found(AGAIN, FILE)
    assert not is_found(AGAIN, FILE, ran=False)


@pytest.mark.parametrize(
    "loop",
    [
        "for epoch in range(90):\n    model.train()\n",  # a module's mode
        "def train(model):\n    pass\n\nfor epoch in range(90):\n    train(model)\n",  # of its own
        IMPORTS + "for epoch in range(90):\n    epoch(model)\n",  # no method
        IMPORTS + "Fit().epoch(model, loader=loader)\n",  # once
    ],
)
def test_another_function_of_that_name_does_not(loop: str) -> None:
    assert not is_found(loop)
    assert not is_found(loop.replace(IMPORTS, ""), FILE)
