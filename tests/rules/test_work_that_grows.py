"""Lists that get longer in each step, and of which each step reads everything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis import diagnose
from warpline.rulekit.growing import longer_each_step

CODE = """\
#> device kind=cpu; steps step_ms=20
class Drift:
    def __init__(self):
        self.seen = {made}

    def of(self, wave):
        self.{kept}  #> cost step_ms=0.1 calls=1
        past = torch.cat({read})
        #^ cost step_ms={ms} device_ms={ms} calls=1 {sizes}
        return wave.mean() - past.mean()  #> cost step_ms=0.1 calls=1

{more}
drift = Drift()
for wave in sea:
    found = net(wave)  #> cost step_ms=15 device_ms=15 calls=1
    apart = drift.of(found.detach())  #> cost step_ms=0.1 calls=1
"""
AS_IT_IS = {
    "made": "[]",
    "kept": "seen.append(wave)",
    "read": "self.seen",
    "ms": 4,
    "more": "",
    "lengths": (96, 104, 112, 120, 128),
    "count": 0.2,
}


def code(**facts: object) -> str:
    given = AS_IT_IS | facts
    lengths, count = given.pop("lengths"), given.pop("count")
    assert isinstance(lengths, tuple)
    sizes = "".join(
        f"\n        #^ op aten::view count={count} shapes=[[{one},32]] device_ms=0.2" for one in lengths
    )
    return CODE.format(**given, sizes=sizes)


def lines(text: str) -> list[int]:
    example = read_example(text)
    diagnosis = diagnose(example.profile, texts(example))
    assert not [note for note in diagnosis.notes if "failed" in note]
    return [one.line for one in diagnosis.findings if one.rule == "memory-growth"]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"ms": 0.6},  # little now, but more later
        {"kept": "seen.extend([wave])"},
        {"read": "list(self.seen)"},
        {"more": "def shown(rows):\n    seen = [row for row in rows]\n    return seen"},  # another name
    ],
)
def test_the_line_that_keeps_is_found(facts: dict[str, object]) -> None:
    assert lines(code(**facts)) == [6]


@pytest.mark.parametrize(
    "facts",
    [
        {"ms": 0.2},  # too little
        {"made": "deque(maxlen=500)"},
        {"more": "def epoch_ends(drift):\n    drift.seen.clear()"},
        {"more": "def epoch_ends(drift):\n    drift.seen = []"},
        {"more": "class Longer(Drift):\n    seen = ()"},
        {"more": "def epoch_ends(drift):\n    del drift.seen[:100]"},
        {"more": "def epoch_ends(drift):\n    drift.seen[:] = drift.seen[-5:]"},
        {"more": "for voyage in voyages:\n    drift = Drift()"},
        {"read": "window"},  # of something else
        {"lengths": (128,), "count": 1.0},  # always as long
        {"lengths": (96, 104, 112, 120, 160)},  # now longer by this and now by that
        {"lengths": (96, 104, 112, 120, 128), "count": 1.0},  # each step goes through all lengths
        {"lengths": (120, 128), "count": 0.5},
    ],
)
def test_nothing_is_found(facts: dict[str, object]) -> None:
    assert lines(code(**facts)) == []


def trained(**facts: object) -> list[int]:
    return lines(code(**facts).replace("ms=15 calls", "ms=15 backward_ms=9 calls"))


@pytest.mark.parametrize(
    "facts",
    [
        {"more": "def epoch_ends(drift):\n    drift.seen.clear()"},
        {"more": "def epoch_ends(drift):\n    drift.seen = []"},
        {"more": "for voyage in voyages:\n    drift = Drift()"},
        {"more": "for voyage in voyages:\n    drift = Drift()", "ms": "4 nodes=0"},
    ],
)
def test_in_training_a_list_that_each_epoch_begins_again(facts: dict[str, object]) -> None:
    assert trained(**facts) == [6]


@pytest.mark.parametrize(
    "facts",
    [
        {"more": "def epoch_ends(drift):\n    del drift.seen[:100]"},
        {"more": "def epoch_ends(drift):\n    drift.seen = drift.seen[-9:]"},
        {"more": "def epoch_ends(drift):\n    drift.seen.pop()"},
        {"more": "def epoch_ends(drift):\n    drift.seen = [drift.seen[-1]]"},
        {"more": "drift.seen = []  #> cost calls=1"},
        {"more": "for voyage in voyages:\n    drift = Drift()", "ms": "4 nodes=2"},  # the model looks back
        {"made": "deque(maxlen=500)", "more": "for voyage in voyages:\n    drift = Drift()"},
    ],
)
def test_in_training_what_gets_shorter_or_is_trained_on(facts: dict[str, object]) -> None:
    assert trained(**facts) == []


def test_of_two_lists_that_are_read_together_one_is_told() -> None:
    text = code(kept="seen.append(wave); self.places.append(place)", read="self.seen + self.places")
    text = text.replace("        self.seen = []\n", "        self.seen = []\n        self.places = []\n")
    assert lines(text) == [7]


def test_what_is_computed_of_it_by_some_steps_is_followed() -> None:
    text = code(ms=0.01).replace(
        "        return wave",
        "        order = past.argsort()  #> cost calls=1\n"
        "        rank = order.cumsum(0)  #> cost calls=1\n"
        "        area = rank - order  #> cost step_ms=3 device_ms=3 calls=1"
        + "".join(
            f"\n        #^ op aten::sub count=0.2 shapes=[[{n}],[{n}],[]] device_ms=0.5"
            for n in (5, 6, 7, 8, 9)
        )
        + "\n        return wave",
    )
    assert lines(text) == [6]


def test_the_last_size_is_told() -> None:
    costs = {cost.line: cost for cost in read_example(code()).profile.lines}
    assert longer_each_step(costs[7], 5) == 128
    assert longer_each_step(costs[7], 4) is None


def test_an_operator_that_calls_itself_has_each_length_twice() -> None:
    """`std(0)` calls `std` with a correction in place of `unbiased`: each length is there twice."""
    ops = [line for line in code().splitlines() if "#^ op" in line]
    assert lines(code().replace("\n".join(ops), "\n".join(ops + ops))) == [6]
    uneven = "\n".join([*ops, *(one.replace("128,", "132,") for one in ops)])
    assert lines(code().replace("\n".join(ops), uneven)) == []


@pytest.mark.parametrize(("retries", "told"), [(5, True), (0, False)])
def test_blocks_that_the_allocator_cannot_use_again(retries: int, told: bool) -> None:
    """An H200 of 140 GiB was full after 13 s, and scripts beside it failed."""
    memory = f"#> memory reserved_bytes=147840827392 peak_bytes=9236585984 alloc_retries={retries}\n"
    example = read_example(memory + code())
    (found,) = diagnose(example.profile, texts(example)).findings
    held = "memory for 8.6 GiB in use, and had to give blocks back 5 times"
    assert (held in found.message) is told


def test_and_a_tensor_that_each_step_makes_longer() -> None:
    example = read_example(
        """\
#> memory reserved_bytes=141736017920 peak_bytes=21609055232 alloc_retries=13
class Recorder:
    def __call__(self, state):
        self.frames = torch.vstack((self.frames, state[None]))
        #^ cost step_ms=4 device_ms=4
        #^ op aten::cat count=0.3 shapes=[[800,64,16,64],[]] device_ms=1
        #^ op aten::cat count=0.3 shapes=[[816,64,16,64],[]] device_ms=1
        #^ op aten::cat count=0.3 shapes=[[832,64,16,64],[]] device_ms=1
"""
    )
    (found,) = diagnose(example.profile, texts(example)).findings
    assert found.rule == "cat-in-loop"
    assert "it holds 132 GiB of the device's memory" in found.message


TOKENS = """\
#> device kind=cpu; steps step_ms=20
def write(prompt):
    said = [prompt]
    for _ in range(500):
        said.append(model(said[-1]))  #> cost step_ms=15 device_ms=15 calls=1
        seen = torch.cat(said)
        #^ cost step_ms=4 device_ms=4 calls=1; op aten::view count=0.2 shapes=[[7,32]] device_ms=0.2
        #^ op aten::view count=0.2 shapes=[[8,32]] device_ms=0.2
        #^ op aten::view count=0.2 shapes=[[9,32]] device_ms=0.2
        #^ op aten::view count=0.2 shapes=[[10,32]] device_ms=0.2
        #^ op aten::view count=0.2 shapes=[[11,32]] device_ms=0.2
"""


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ("write(start)", [4]),
        ("for prompt in prompts:\n    write(prompt)", []),  # each text is short
        ("texts = [write(prompt) for prompt in prompts]", []),
    ],
)
def test_a_list_that_a_function_makes_again(calls: str, found: list[int]) -> None:
    assert lines(TOKENS + calls + "\n") == found


JOINED = """\
#> device kind=cpu; steps step_ms=20
class Store:
    def __init__(self):
        self.keys = torch.randn(512, 32)

    def push(self, fresh):
        self.keys = torch.cat([fresh, self.keys])
        #^ cost step_ms=2 device_ms=2 calls=1; op aten::copy_ count=0.2 shapes=[[7,32]] device_ms=0.2
        #^ op aten::copy_ count=0.2 shapes=[[8,32]] device_ms=0.2
        #^ op aten::copy_ count=0.2 shapes=[[9,32]] device_ms=0.2
        #^ op aten::copy_ count=0.2 shapes=[[10,32]] device_ms=0.2
        #^ op aten::copy_ count=0.2 shapes=[[11,32]] device_ms=0.2
{more}
for x in loader:
    loss = net(x)  #> cost step_ms=15 device_ms=15 backward_ms={backward} calls=1
"""


@pytest.mark.parametrize(
    ("more", "backward", "found"),
    [
        ("", 9, [6]),
        ("", 0, []),  # what a text looks back at gets longer as well
        ("    def forget(self):\n        self.keys = self.keys[:0]\n", 9, []),
    ],
)
def test_a_tensor_that_a_training_step_makes_longer(more: str, backward: int, found: list[int]) -> None:
    assert lines(JOINED.format(more=more, backward=backward)) == found


SUMMED = """\
#> device kind=cpu; steps step_ms=20
trail = []
for x in loader:
    now = net(x)  #> cost step_ms=15 device_ms=15 calls=1
    {kept}  #> cost calls=1
    mean = sum(trail) / len(trail)
    #^ cost step_ms=5 device_ms=5 forward_ms=5 calls=1
    #^ node aten.add.Tensor args=[%20,%21] shape=[64,64]; node aten.add.Tensor args=[%0,%22] shape=[64,64]
    #^ node aten.add.Tensor args=[%1,%23] shape=[64,64]; node aten.div.Tensor args=[%2,4] shape=[64,64]
"""


@pytest.mark.parametrize(
    ("kept", "rules"), [("trail.append(now)", {"memory-growth"}), ("pass", {"constant-rebuilt"})]
)
def test_the_sum_of_a_list_that_gets_longer_is_no_constant(kept: str, rules: set[str]) -> None:
    example = read_example(SUMMED.format(kept=kept))
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=(0, 1)))
    found = diagnose(replace(example.profile, facts=facts), texts(example)).findings
    assert {one.rule for one in found} & {"memory-growth", "constant-rebuilt"} == rules
