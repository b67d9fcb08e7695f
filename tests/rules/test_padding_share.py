"""How much of a line works on a batch that has padding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, Example, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.graph import graph_of
from warpline.rules.padded_batches import PaddedBatches, _worked
from warpline.wire.dataflow import Padding
from warpline.wire.run import CompiledKernel

TEXT = Padding(value=0, site=0, rows=4, columns=77, padded=250, shared=60)


def worked(example: Example, *compiled: CompiledKernel) -> dict[tuple[str, int], float]:
    facts = replace(example.profile.facts, compiled_kernels=compiled)
    context = Context(replace(example.profile, facts=facts), texts(example))
    return _worked(context, graph_of(facts.dataflow), TEXT)


def test_a_model_of_pictures_works_little_on_its_text() -> None:
    example = read_example(
        """\
loss = unet(noise, text)  #> cost device_ms=38; node aten.convolution shape=[4,320,8,8]
#^ node aten.mm inputs=[] shape=[308,64]
found = encoder(ids)  #> cost device_ms=1; node aten.mm shape=[308,64]; node aten.add shape=[4,77,64]
kept = running + 1  #> cost device_ms=1; node aten.add shape=[3,3]
"""
    )
    shares = worked(example)
    pictures, text = 4 * 320 * 8 * 8, 308 * 64
    assert shares == {(FILE, 1): pytest.approx(text / (text + pictures)), (FILE, 2): 1.0}


def test_compiled_layers_work_on_the_text_that_they_are_given() -> None:
    example = read_example(
        """\
def layer(h):
    return h @ weight  #> cost device_ms=38
hidden = embed(ids)  #> cost device_ms=1; node aten.add shape=[4,77,64]
hidden = layer(hidden)  #> cost device_ms=0; node warpline.compiled.default shape=[4,77,64]
update(state)  #> cost device_ms=1; node warpline.compiled.default shape=[4,77,3,64]
"""
    )
    lines = ((FILE, 2, "layer"),)
    shares = worked(example, CompiledKernel("extern_kernels.mm", lines, False, 0, "0/0"))
    assert shares == {(FILE, 2): 1.0, (FILE, 3): 1.0}
    assert worked(example) == {(FILE, 3): 1.0}


def test_the_loss_works_on_all_but_the_last_column() -> None:
    example = read_example("loss = losses(states)  #> cost device_ms=1; node aten.mm shape=[304,64]\n")
    assert worked(example) == {(FILE, 1): 1.0}


COLLATED = """\
#> steps step_ms=40
def stack(rows):
    width = max(len(row) for row in rows)
    page = torch.zeros(len(rows), width, dtype=torch.long)
    return page
{sampler}
loader = DataLoader(texts)
#^ site loader num_workers=4 collate_file={file} collate_line=1 {given}
for ids in loader:  #> use loader
    loss = model(ids)
    #^ padding rows=32 columns=512 padded=9000 shared=0
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""


@pytest.mark.parametrize(
    ("sampler", "given", "line"),
    [
        ("class Plan:\n    order = torch.randperm(99)", "with.sampler=Plan", 6),
        ("class Plan:\n    order = list(range(99))", "with.sampler=Plan", 3),
        ("", "with.sampler=RandomSampler", 3),
    ],
)
def test_the_line_that_decides_on_the_padding_of_a_loader(sampler: str, given: str, line: int) -> None:
    example = read_example(COLLATED.format(sampler=sampler, given=given, file=FILE))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line


HELPED = """\
#> steps step_ms=40
import torch

class Filler:
    def __init__(self, width=None):
        self.width = width

    def filled(self, rows):
        width = self.width or max(map(len, rows))
        return torch.zeros(len(rows), width, dtype=torch.long)

def stack(rows):
    return filler.filled(rows)

filler = Filler({width})
loader = DataLoader(texts, collate_fn=stack)
#^ site loader num_workers=4 collate_file={file} collate_line=11 rows_type=Texts
for ids in loader:  #> use loader
    loss = model(ids)
    #^ padding rows=32 columns=512 padded=9000 shared=200
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""


@pytest.mark.parametrize(("width", "line"), [("512", 8), ("width=512", 8), ("128", 15), ("", 15)])
def test_what_a_collate_function_calls_may_fill_the_rows(width: str, line: int) -> None:
    example = read_example(HELPED.format(width=width, file=FILE))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line
    assert not draft.fixes


EARLIER = """#> steps step_ms=40
LIMIT = 512
texts = TensorDataset({made})
loader = DataLoader(texts)  #> site loader num_workers=0 rows_type=TensorDataset
for ids in loader:  #> use loader
    loss = model(ids)
    #^ padding rows=32 columns=512 padded=9000 shared=200
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("torch.tensor(pad_sequences(rows, maxlen=LIMIT))", 2),
        ("padded_rows(rows, LIMIT), padded_rows(others, LIMIT)", 2),
        ("torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)", 2),
        ("torch.tensor(pad_sequences(rows, maxlen=LIMIT // 2))", 3),
        ("torch.tensor(cut_up(rows, maxlen=LIMIT))", 3),
    ],
)
@pytest.mark.parametrize("shared", [200, 20])  # most of the padding is behind rows of different lengths
def test_calls_that_pad_before_the_steps_by_their_name(made: str, line: int, shared: int) -> None:
    example = read_example(EARLIER.format(made=made).replace("shared=200", f"shared={shared}"))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line


FEATURES = """#> steps step_ms=40
LIMIT = 512
def features(texts, limit):
    for ids in texts:
        {missing}
        ids = {filled}
        yield ids
texts = TensorDataset(torch.tensor(list(features(rows, LIMIT))))
loader = DataLoader(texts)  #> site loader num_workers=0 rows_type=TensorDataset
for ids in loader:  #> use loader
    loss = model(ids)
    #^ padding rows=32 columns=512 padded=9000 shared=200
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""


@pytest.mark.parametrize(
    ("missing", "filled", "line"),
    [
        ("missing = limit - len(ids)", "ids + ([0] * missing)", 4),
        ("missing = limit - len(ids)", "numpy.pad(ids, (0, missing))", 4),
        ("missing = limit - len(ids)", "ids[: len(ids) - missing]", 8),
        ("pass", "ids + [0] * (limit - len(ids))", 5),
    ],
)
def test_rows_are_filled_up_by_a_number_that_has_a_name(missing: str, filled: str, line: int) -> None:
    example = read_example(FEATURES.format(missing=missing, filled=filled))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line


#: The next batch is padded in the step that works on the one before.
IN_THE_STEP = """\
#> steps step_ms=40
def batches(texts):
    {order}
    for at in range(0, len(order), 32):
        picked = order[at : at + 32]
        yield pad_sequence({rows})  #> node aten.pad_sequence.default shape=[{padded},490] dtype=int64
for ids in batches(texts):
    keep(model(ids))
    #^ tensor %2 shape=[32,512] dtype=int64; tensor %3 shape=[900,64]
    #^ node aten.embedding.default args=[%3,%2] shape=[32,512,64]
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""
TAKEN, RANGE = "[texts[i] for i in picked]", "order = list(range(len(texts)))"


def in_the_step(**given: object) -> int:
    written = {"order": RANGE, "rows": TAKEN, "padded": 32, **given}
    example = read_example(IN_THE_STEP.format(**written))
    value = Padding(value=2, site=1, rows=32, columns=512, padded=9000, shared=0)
    flow = replace(example.profile.facts.dataflow, padding=(value,))
    facts = replace(example.profile.facts, dataflow=flow)
    (draft,) = PaddedBatches().find(Context(replace(example.profile, facts=facts), texts(example)))
    return draft.line


@pytest.mark.parametrize(
    ("order", "line"),
    [
        (RANGE, 2),
        ("order = torch.randperm(len(texts)).tolist()", 2),
        ("order = sorted(range(len(texts)), key=author)", 5),
        (f"{RANGE}; order.sort(key=author)", 5),
    ],
)
def test_the_order_of_the_rows_that_the_step_pads(order: str, line: int) -> None:
    assert in_the_step(order=order) == line


@pytest.mark.parametrize("rows", ["read(picked)", "[texts[i] for i in range(at, at + 32)]"])
def test_rows_in_no_known_order_stand_where_they_are_padded(rows: str) -> None:
    assert in_the_step(rows=rows) == 5


def test_what_pads_other_rows_is_not_meant() -> None:
    assert in_the_step(padded=16) == 7


FILLED = """\
#> steps step_ms=60
import torch

def together(rows):
    room = {room}
    ids = torch.zeros(len(rows), room, dtype=torch.long)  #> cost step_ms=0.2 cpu_ms=0.2
    return fill(ids, rows)

for rows in batches:
    batch = together(rows)
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared={shared}
"""


@pytest.mark.parametrize(
    ("room", "shared", "own", "order"),
    [("256", 10, True, True), ("256", 180, True, False), ("max(map(len, rows))", 10, False, True)],
)
def test_an_order_alone_saves_nothing_where_rows_have_a_fixed_length(
    room: str, shared: int, own: bool, order: bool
) -> None:
    example = read_example(FILLED.format(room=room, shared=shared))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert ("its own longest row" in draft.message) is own
    assert ("rows of similar length" in draft.message) is order


TOLD = """\
#> steps step_ms=60
class Rows:
    def __next__(self):
        def even(rows, room):
            return torch.tensor([row + [0] * (room - len(row)) for row in rows])
            #^ cost step_ms=0.2 cpu_ms=0.2

        rows = self.some()
        return even(rows, {room})

for ids in Rows():
    loss = model(ids)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=180
"""


@pytest.mark.parametrize(("room", "line"), [("self.room", 7), ("max(map(len, rows))", 10)])
def test_a_length_that_the_caller_tells_and_only_the_run_shows(room: str, line: int) -> None:
    example = read_example(TOLD.format(room=room))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line


CUT = """\
#> steps step_ms=60
def train(batches):
    for rows in batches:
        room = 256
        ids = torch.tensor([row{cut} + [0] * (room - len(row)) for row in rows])
        #^ cost step_ms=0.2 cpu_ms=0.2
        loss = model(ids)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=180
"""


@pytest.mark.parametrize(("cut", "line"), [("[:room]", 4), ("", 3)])
def test_a_length_that_also_cuts_rows_stays(cut: str, line: int) -> None:
    example = read_example(CUT.format(cut=cut))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line
