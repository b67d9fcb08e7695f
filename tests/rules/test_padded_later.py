"""padded-batches: rows that a tokenizer fills up before the steps, and that a collator would pad as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.padded_batches import PaddedBatches
from warpline.text.edits import apply
from warpline.wire.births import Argument
from warpline.wire.dataflow import Padding
from warpline.wire.run import Site

SCRIPT = """\
#> steps step_ms=60
import argparse
from dataclasses import dataclass, field

import torch
from transformers import DataCollatorWithPadding, Trainer

{setup}
{make}
{collator}
for rows in batches:
    x = words(collator(rows))
    #^ tensor %20 shape=[32,256] dtype=int64; tensor %21 shape=[900,64] parameter=true
    #^ node aten.embedding.default args=[%21,%20] shape=[32,256,64]
    real = ids != 0  #> node aten.ne.Scalar args=[%20,0] shape=[32,256] dtype=bool
    y = x * w  #> cost device_ms=50; node aten.mul.Tensor args=[%0,%0] shape=[32,256,64]
"""
FIELD = """\
@dataclass
class Texts:
    same_length: bool = field(default=True, metadata={"help": "Whether all rows are as long as the longest."})
    limit: int = 256

texts = Texts()
"""
OPTION = """\
parser = argparse.ArgumentParser()
parser.add_argument("--ragged", dest="same_length", action="store_false")
texts = parser.parse_args([])
"""
MAP = """\
def tokenized(entry):
    return tokenizer(entry["text"], truncation=True, padding={padding})

rows = data.map(tokenized)
"""
BRANCHES = """\
if texts.same_length:
    filled = "max_length"
else:
    filled = False
"""
CHOICE = '"max_length" if texts.same_length else False'
COLLATOR = "collator = DataCollatorWithPadding(tokenizer)"
TRAINER = "collator = Trainer(model=model, train_dataset=rows, processing_class=tokenizer).data_collator"


def edited(setup: str, make: str, collator: str = COLLATOR, argv: tuple[str, ...] = ()) -> tuple[str, str]:
    """The line of the finding, and the script with its edit; "" where none is offered."""
    example = read_example(
        SCRIPT.replace("{setup}", setup).replace("{make}", make).replace("{collator}", collator)
    )
    facts, manifest = example.profile.facts, replace(example.profile.manifest, argv=argv)
    padding = (Padding(value=20, site=0, rows=32, columns=256, padded=6000, shared=180),)
    facts = replace(facts, dataflow=replace(facts.dataflow, padding=padding))
    profile = replace(example.profile, facts=facts, manifest=manifest)
    (draft,) = PaddedBatches().find(Context(profile, texts(example)))
    line = example.text.splitlines()[draft.line - 1]
    return line, apply(example.text, draft.fixes[0].edits) if draft.fixes else ""


@pytest.mark.parametrize(
    ("values", "grouped"),
    [
        ("{'train_sampling_strategy': 'group_by_length'}", True),
        ("{'group_by_length': True}", True),
        ("{'train_sampling_strategy': 'random'}", False),
        ("{}", False),
    ],
)
def test_an_order_by_length_that_saw_one_length_only(values: str, grouped: bool) -> None:
    """The captured batch has rows of all lengths, but those of later ones are sorted."""
    call = "settings = TrainingArguments()\n"
    site = f'#^ site framework construction=transformers.TrainingArguments "values={values}"\n'
    example = read_example(
        SCRIPT.replace("{setup}", call + site)
        .replace("{make}", made('"max_length"'))
        .replace("{collator}", COLLATOR)
    )
    facts = example.profile.facts
    padding = (Padding(value=20, site=0, rows=32, columns=256, padded=3500, shared=16),)
    facts = replace(facts, dataflow=replace(facts.dataflow, padding=padding))
    (draft,) = PaddedBatches().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert draft.fixes and draft.cost_ms is not None
    left = 1 if grouped else (16 / 256) / (3500 / (32 * 256))
    assert draft.saving_ms == pytest.approx(draft.cost_ms * left)
    assert ("Put rows of similar length into one batch, too." in draft.message) is not grouped


def made(padding: str) -> str:
    return MAP.replace("{padding}", padding)


@pytest.mark.parametrize(
    ("setup", "make", "line", "fixed"),
    [
        (FIELD, made(CHOICE), "    same_length: bool", "field(default=False, metadata"),
        (
            FIELD + f"filled = {CHOICE}",
            made("filled"),
            "    same_length: bool",
            "field(default=False, metadata",
        ),
        (FIELD + BRANCHES, made("filled"), "    same_length: bool", "field(default=False, metadata"),
        (OPTION, made(CHOICE), "parser.add_argument", 'action="store_false", default=False)'),
        (
            "RUN = {'fill': True}",
            made("'max_length' if RUN['fill'] else 'longest'"),
            "RUN",
            "{'fill': False}",
        ),
        ("", made('"max_length"'), "    return tokenizer(", "truncation=True, padding=False)"),
    ],
)
@pytest.mark.parametrize("collator", [COLLATOR, TRAINER])
def test_rows_keep_their_length_until_a_batch_is_made(
    setup: str, make: str, line: str, fixed: str, collator: str
) -> None:
    at, text = edited(setup, make, collator)
    assert at.startswith(line)
    assert fixed in text


@pytest.mark.parametrize(
    "case", ["no collator", "the Trainer's default one", "labels", "tensors", "a tensor"]
)
def test_rows_that_nothing_would_pad_stay(case: str) -> None:
    make, collator = made('"max_length"'), COLLATOR
    if case == "no collator":
        collator = "collator = torch.stack"
    elif case == "the Trainer's default one":
        collator = TRAINER.replace(", processing_class=tokenizer", "")
    elif case == "labels":
        make = make.replace("    return ", "    entry['labels'] = entry['text']\n    return ")
    elif case == "tensors":
        make = make.replace("truncation=True", 'return_tensors="pt"')
    else:
        make = make.replace("return tokenizer(", "return torch.tensor(tokenizer(").replace(
            'length")', 'length"))'
        )
    assert edited("", make, collator) == ("    return " + make.split("return ")[1].split("\n")[0], "")


@pytest.mark.parametrize(
    "parts",
    [
        {"argv": ("--no_same_length",)},
        {"argv": ("--same_length", "True")},
        {"collator": "collator = torch.stack"},
        {"setup": FIELD.replace("Texts()", "Texts(same_length=True)")},
        {"make": made('"max_length" if texts.same_length else texts.how')},
        {"make": made("True if texts.same_length else False")},
    ],
)
def test_a_flag_that_does_not_decide_it_stays(parts: dict[str, Any]) -> None:
    given = {"setup": FIELD, "make": made(CHOICE)} | parts
    _, text = edited(**given)
    assert "default=False" not in text


DATASET = """\
class Texts(torch.utils.data.Dataset):
    def __getitem__(self, at):
        row = tokenizer(self.texts[at], truncation=True, padding="max_length")  #> cost cpu_ms=2 calls=32
        return row

batches = torch.utils.data.DataLoader(Texts(), batch_size=32, collate_fn=DataCollatorWithPadding(tokenizer))
"""


@pytest.mark.parametrize(
    ("collator", "behind", "found"),
    [
        ("DataCollatorWithPadding", 0, True),
        ("DataCollatorWithPadding", 20, False),  # another dataset's loader
        ("function", 0, False),
    ],
)
def test_a_dataset_whose_loader_has_a_collator_that_pads(collator: str, behind: int, found: bool) -> None:
    """The collator is the one that the run recorded, and so is the function that makes a row."""
    example = read_example(
        SCRIPT.replace("{setup}", "").replace("{make}", DATASET).replace("{collator}", "collator = list")
    )
    argument = Argument("collate_fn", collator, True)
    line = example.text[: example.text.index("def __getitem__")].count("\n") + 1 + behind
    facts = {"num_workers": 0, "rows_file": FILE, "rows_line": line}
    site = Site("loader", FILE, 12, "<module>", facts, arguments=(argument,))
    padding = (Padding(value=20, site=0, rows=32, columns=256, padded=6000, shared=180),)
    old = example.profile.facts
    new = replace(old, sites=(site,), dataflow=replace(old.dataflow, padding=padding))
    (draft,) = PaddedBatches().find(Context(replace(example.profile, facts=new), texts(example)))
    assert example.text.splitlines()[draft.line - 1].startswith("        row = tokenizer")
    text = apply(example.text, draft.fixes[0].edits) if draft.fixes else ""
    assert ("truncation=True, padding=False)" in text) is found
