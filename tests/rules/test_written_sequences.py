"""What a program writes may repeat one token, which fills nothing up."""

from __future__ import annotations

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.rulekit import Context
from warpline.rulekit.decoding import loop_call

LOOKED_UP = """\
#> steps step_ms=40
seen = table(words)
#^ cost step_ms=38 device_ms=38 backward_ms={backward}; op aten::mm device_ms=38 shapes=[[776,768],[768,768]]
#^ padding rows=8 columns={columns} padded=400 shared=40 leading={leading}{kept}
"""


def is_padding(
    lengths: list[int], columns: int = 97, leading: str = "false", backward: int = 0, rows: int = 8
) -> bool:
    kept = "".join(f"\n#^ op aten::embedding shapes=[[9000,64],[{rows},{one}]] count=0.2" for one in lengths)
    code = LOOKED_UP.format(columns=columns, leading=leading, backward=backward, kept=kept)
    example = read_example(code)
    found = diagnose(example.profile, texts(example)).findings
    return "padded-batches" in [one.rule for one in found]


@pytest.mark.parametrize("lengths", [[98, 99, 100], [97, 98, 99], [120, 121, 122, 140]])
def test_what_gets_longer_word_by_word_is_written(lengths: list[int]) -> None:
    assert not is_padding(lengths)


@pytest.mark.parametrize("lengths", [[97], [97, 98], [64, 97, 128], [96, 104, 112]])
def test_batches_of_other_lengths_are_padded(lengths: list[int]) -> None:
    assert is_padding(lengths)


def test_prompts_that_are_filled_up_at_the_beginning_are_padded() -> None:
    assert is_padding([98, 99, 100], leading="true")


def test_what_the_same_table_is_asked_for_beside_is_padded() -> None:
    assert is_padding([20, 21, 22, 97])  # the texts to translate
    assert is_padding([98, 99, 100], rows=4)


def test_batches_that_are_trained_with_are_padded() -> None:
    assert is_padding([98, 99, 100], backward=10)


NESTED = """\
class Heads:
    def forward(self, x):
        return attend(x)  #> cost device_ms=9 function=Heads.forward
class Layer:
    def forward(self, x):
        return self.heads(x)  #> cost function=Layer.forward called='[["/example/train.py","Heads.forward"]]'
class Stack:
    def forward(self, x):
        return self.layer(x)  #> cost function=Stack.forward called='[["/example/train.py","Layer.forward"]]'
class Body:
    def forward(self, x):
        return self.stack(x)  #> cost function=Body.forward called='[["/example/train.py","Stack.forward"]]'
class Model:
    def forward(self, x):
        return self.body(x)  #> cost function=Model.forward called='[["/example/train.py","Body.forward"]]'
def following(x):
    return model(x)[:, -1]  #> cost function=following called='[["/example/train.py","Model.forward"]]'
def write(x):
    while x.shape[1] < 99:
        y = following(x)  #> cost function=write called='[["/example/train.py","following"]]'
        x = torch.cat([x, y], 1)
"""


def test_a_model_of_many_layers_stands_at_its_call_in_the_loop() -> None:
    example = read_example(NESTED)
    context = Context(example.profile, texts(example))
    assert loop_call(context, ((FILE, 3, "Heads.forward"),)) == (FILE, 20)
