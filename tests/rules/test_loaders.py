"""Where a loader's settings come from, and what the command line passes for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example
from warpline.rulekit import Context
from warpline.rules.loader_without_workers import LoaderWithoutWorkers

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
