"""loader-workers-restart where a framework has the loop over the epochs."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.text.edits import apply

LIGHTNING = 'construction=lightning.Trainer "parameters=[]" with.max_epochs={}'
ARGUMENTS = (
    'construction=transformers.TrainingArguments "parameters=[]" "values={{\'num_train_epochs\': {}}}"'
)
CODE = """\
#> workers batch_ms=100
import lightning as L
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8)
#^ site loader num_workers=8 persistent_workers=false batches_per_epoch=200 start_ms=900 epochs_started=1
runs = make(**settings)  #> site framework {made}
runs.fit(loader)  #> use loader
#^ cost step_ms=20 device_ms=20; inside file=/lib/{package}/loops/fit_loop.py line=9 step_ms=20
"""


def drafted(made: str, package: str) -> list[str]:
    example = read_example(CODE.format(made=made, package=package))
    drafts = LoaderWorkersRestart().find(Context(example.profile, texts(example)))
    return [apply(example.text, draft.fixes[0].edits) for draft in drafts]


@pytest.mark.parametrize(
    ("made", "package"),
    [
        (LIGHTNING.format(200), "lightning"),
        (LIGHTNING.format(-1), "lightning"),
        (ARGUMENTS.format(3.0), "transformers"),
    ],
)
def test_a_framework_begins_the_loader_again(made: str, package: str) -> None:
    (text,) = drafted(made, package)
    assert "num_workers=8, persistent_workers=True)" in text


@pytest.mark.parametrize(
    ("made", "package"),
    [
        (LIGHTNING.format(1), "lightning"),
        (LIGHTNING.format(200), "other"),
        (ARGUMENTS.format(1.0), "transformers"),
        (LIGHTNING.format(200).split(" with")[0], "lightning"),
    ],
)
def test_one_epoch_or_another_library_does_not(made: str, package: str) -> None:
    assert not drafted(made, package)
