"""An order by length is offered where it makes batches narrower and the framework can measure rows."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_frameworks import found
from warpline.text.edits import apply

SCRIPT = """\
#> steps step_ms=100
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

{own}

args = TrainingArguments("out")
#^ site framework construction=transformers.TrainingArguments parameters={parameters} values={{}}
Trainer(model=model, args=args, data_collator={collator}).train()
#^ cost step_ms=90 device_ms=90; padding rows=32 columns=512 padded=9000 shared={shared}
#^ inside file=/lib/transformers/modeling_bert.py line=9 step_ms=90
"""
PARAMETERS = "['train_sampling_strategy']"
TENSORS = """\
def collate(rows):
    return {"input_ids": pad_sequence(rows, batch_first=True)}"""
DICTS = """\
def collate(rows):
    batch = {}
    batch["input_ids"] = pad_sequence([row["input_ids"] for row in rows], batch_first=True)
    return batch"""
ASSIGNED = """\
class Padded:
    def __call__(self, rows):
        batch = {}
        batch["input_ids"] = pad_sequence(rows, batch_first=True)
        return batch

collate = Padded()"""


@pytest.mark.parametrize(
    ("own", "collator", "shared", "offered"),
    [
        ("", "DataCollatorWithPadding(tokenizer)", 0, True),
        ("", "DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)", 7, True),
        ("", "DataCollatorWithPadding(tokenizer, padding='max_length')", 60, False),
        (DICTS, "collate", 0, True),
        (TENSORS, "collate", 0, False),
        (ASSIGNED, "collate", 0, False),
        ("", "lambda rows: pad_sequence(rows)", 0, False),
    ],
)
def test_rows_are_put_in_order_where_that_works(own: str, collator: str, shared: int, offered: bool) -> None:
    finding, text = found(
        SCRIPT.format(own=own, collator=collator, shared=shared, parameters=PARAMETERS), "padded-batches"
    )
    changed = [apply(text, fix.edits) for fix in finding.fixes]
    assert any('"group_by_length"' in one for one in changed) is offered
