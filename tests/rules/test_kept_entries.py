"""Values with a graph that pass through dicts, tuples and objects into what outlives the step."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.graph_kept_alive import GraphKeptAlive
from warpline.text.edits import apply

CODE = """\
#> memory growth_bytes_per_step=52428800
{more}
def compare(scores, labels):
    error = (scores - labels).abs()  #> cost device_ms=1 kept_bytes=52428800 calls=1 nodes=2 unused_nodes=2
    far = error.mean(){read}  #> cost calls=1 nodes={nodes} unused_nodes={nodes}
    part = {part}  #> cost calls=1{made}
    return {given}  #> cost calls=1

class Log:
    def push(self, {taken}):
        {loop}
            {keep}  #> cost function=Log.push calls={calls}{adds}

for images, labels in loader:
    {got} = compare(model(images), labels)  #> cost device_ms=20 calls=1 nodes=40
    loss.backward()  #> cost calls=1
    log.push({pushed})  #> cost calls=1
"""
AS_IT_IS = {
    "more": "",
    "read": "",
    "nodes": 1,
    "part": "{'far': far, 'count': len(labels)}",
    "made": "",
    "given": "criterion(scores, labels), part",
    "taken": "metrics",
    "loop": "for key, value in metrics.items():",
    "keep": "self.seen[key].append(value)",
    "calls": 2,
    "adds": "",
    "got": "loss, found",
    "pushed": "found",
}


def drafts(**facts: object) -> tuple[str, list[Draft]]:
    example = read_example(CODE.format(**AS_IT_IS | facts))
    return example.text, list(GraphKeptAlive().find(Context(example.profile, texts(example))))


ONE = {"loop": "if True:", "calls": 1}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"loop": "for key in metrics:", "keep": "self.seen[key].append(metrics[key])"},
        {"loop": "for value in metrics.values():", "keep": "self.seen.append(value)"},
        {"part": "dict(far=far, count=len(labels))"},
        {"pushed": "found['far']", "keep": "self.seen.append(metrics)", **ONE},
        {"keep": "self.seen.append(metrics['far'])", **ONE},
        {"part": "[len(labels), far]", "loop": "for value in metrics:", "keep": "self.seen.append(value)"},
        {"part": "[len(labels), far]", "keep": "self.seen.append(metrics[1])", **ONE},
        {"given": "criterion(scores, labels), far", "keep": "self.seen.append(metrics)", **ONE},
        {
            "more": "@dataclass\nclass Found:\n    count: int\n    far: object",
            "part": "Found(len(labels), far)",
            "keep": "self.seen.append(metrics.far)",
            **ONE,
        },
        {
            "more": "@dataclass\nclass Found:\n    count: int\n    far: object",
            "part": "Found(count=len(labels), far=far)",
            "pushed": "found.far",
            "keep": "self.seen.append(metrics)",
            **ONE,
        },
        # Its line says it, whatever made the value.
        {
            "part": "merged(far)",
            "keep": "self.sums[key] += value",
            "adds": " nodes=1 unused_nodes=1",
        },
        {"part": "merged(far)", "keep": "self.sum = self.sum + value", "adds": " nodes=2 unused_nodes=2"},
    ],
)
def test_it_is_found_where_it_is_kept(facts: dict[str, object]) -> None:
    _, found = drafts(**facts)
    assert [one.line for one in found] == [11 + str(facts.get("more", "")).count("\n")]


@pytest.mark.parametrize(
    "facts",
    [
        {"read": ".item()", "nodes": 0},
        {"part": "{'far': far.item(), 'count': len(labels)}"},
        {"part": "{'far': far.detach(), 'count': len(labels)}"},
        {"keep": "self.seen.append(metrics['count'])", **ONE},
        {"pushed": "found['count']", "keep": "self.seen.append(metrics)", **ONE},
        {"part": "[len(labels), far]", "keep": "self.seen.append(metrics[0])", **ONE},
        {"given": "criterion(scores, labels), len(labels), far", "got": "loss, found, far", **ONE},
        # A loss that is put together: the backward pass goes through it.
        {"part": "merged(far)", "keep": "self.sums[key] += value", "adds": " nodes=1 unused_nodes=0"},
    ],
)
def test_others(facts: dict[str, object]) -> None:
    _, found = drafts(**facts)
    assert not found


def test_where_some_are_numbers_the_tensor_is_detached_where_it_is_made() -> None:
    text, (draft,) = drafts(part="{'far': error.mean(), 'count': 1}", made=" nodes=1 unused_nodes=1")
    (fix,) = draft.fixes
    assert "{'far': error.mean().detach(), 'count': 1}" in apply(text, fix.edits)


def test_but_not_what_the_backward_pass_goes_through() -> None:
    _, (draft,) = drafts(part="{'far': error.mean(), 'count': 1}", made=" nodes=1")
    assert not draft.fixes
    assert "detach `error.mean()` (line 5) where it is written" in draft.message


def test_where_all_are_tensors_each_is_detached_where_it_is_kept() -> None:
    text, (draft,) = drafts(part="{'far': far, 'near': far.exp()}", made=" nodes=1")
    (fix,) = draft.fixes
    assert "append(value.detach())" in apply(text, fix.edits)


LOGGER = """\
#> memory growth_bytes_per_step=52428800
def logger():
    seen = []

    def log(value):
        seen.append(value)  #> cost calls=1
        return seen  #> cost calls=1

    return log

log = logger()
for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=20 kept_bytes=52428800 calls=1 nodes=40
    loss.backward()  #> cost calls=1
    {use}  #> cost calls=1
"""


@pytest.mark.parametrize(("use", "found"), [("log(loss)", True), ("part = log(loss)", False)])
def test_what_a_function_gives_back_and_nothing_takes(use: str, found: bool) -> None:
    example = read_example(LOGGER.format(use=use))
    mine = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [one.line for one in mine] == [5] * found


WHOLE = """\
#> memory growth_bytes_per_step=52428800
class Module:
    def training_step(self, batch):
        error = self.criterion(self.net(batch))  #> cost device_ms=20 kept_bytes=52428800 calls=1 nodes=40
        rest = 0.5 * error + self.bias  #> cost calls=1 nodes=5
        return {back}  #> cost calls=1

outputs = []
for batch in loader:
    output = module.training_step(batch)  #> cost calls=1
    output{part}.backward()  #> cost calls=1
    outputs.append({kept})  #> cost calls=1
"""


@pytest.mark.parametrize(
    ("back", "part", "kept", "found"),
    [
        ('{"loss": error, "smooth": rest}', '["loss"]', "output", True),
        ("dict(loss=error, smooth=rest)", '["loss"]', "output", True),
        ("error, rest", "[0]", "output", True),
        ('{"loss": error, "smooth": rest}', '["loss"]', '{"all": output}', True),
        ('{"loss": error.item(), "smooth": rest.detach()}', '["loss"]', "output", False),
        ('{"loss": error, "smooth": rest.item()}', '["loss"]', 'output["smooth"]', False),
    ],
)
def test_a_whole_dict_of_the_step_is_kept(back: str, part: str, kept: str, found: bool) -> None:
    example = read_example(WHOLE.format(back=back, part=part, kept=kept))
    mine = list(GraphKeptAlive().find(Context(example.profile, texts(example))))
    assert [one.line for one in mine] == [11] * found
    for one in mine:
        assert "detach `error` (line 5), `rest` (line 5) where `output` is made" in one.message
