"""A coding agent's session, by the client of the official SDK."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import ExampleRun, environment


def session(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[set[str], list[Any]]:
    """The tools that ``warpline mcp`` offers in ``folder``, and what it answers."""
    from mcp import Client, StdioServerParameters  # takes as long to import as all of our own

    async def talk() -> tuple[set[str], list[Any]]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "warpline", "mcp"], cwd=folder, env=environment()
        )
        async with Client(server, read_timeout_seconds=170) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


def said(answer: Any) -> str:
    from mcp.types import TextContent

    return "".join(part.text for part in answer.content if isinstance(part, TextContent))


def test_an_agent_reads_a_run(example_run: ExampleRun) -> None:
    script = example_run.script.name
    wanted = example_run.report.findings[0]
    tools, (summary, one, diff, page, listed, plan) = session(
        example_run.folder,
        ("report", {}),
        ("finding", {"id": wanted.id}),
        ("fix_diff", {"script": script, "rule": wanted.rule}),
        ("explain", {"rule": wanted.rule}),
        ("runs", {}),
        ("plan", {"script": script}),
    )
    assert {"profile", "report", "finding", "fix_diff", "measure", "plan", "runs", "explain"} <= tools
    report = summary.structured_content
    assert report["steps"]["step_ms"] == pytest.approx(example_run.report.steps.step_ms)
    assert [found["id"] for found in report["findings"]] == [one.id for one in example_run.report.findings]
    costs = [line["step_ms"] for line in report["lines"]]
    assert costs == sorted(costs, reverse=True)
    assert one.structured_content["evidence"]
    assert said(diff).startswith(f"--- a/{script}")
    assert wanted.rule in said(page)
    assert len(listed.structured_content["runs"]) == 1
    made = example_run.report.plan
    if made is None:  # a machine so busy that nothing gains
        assert plan.structured_content["plan"] is None
    else:
        steps = [one["step_ms"] for one in plan.structured_content["plan"]["steps"]]
        assert steps == pytest.approx([one.step_ms for one in made.steps])


#: A call, and the one line that answers it.
WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("profile", {"script": "nothing.py"}, "warpline: there is no script nothing.py"),
    ("report", {}, "warpline: no run in "),
    ("profile", {}, "profile: script is missing"),
    (
        "profile",
        {"script": "x.py", "timeout_s": 0, "arguments": 5},
        "profile: arguments: input should be a valid list; timeout_s: input should be greater than 0",
    ),
    ("explain", {"name": "x"}, "explain has no argument name; it takes rule"),
    ("runs", {"all": True}, "runs has no argument all; it takes none"),
    ("find", {}, "there is no tool find; there are profile, report, finding, "),
)


def test_what_goes_wrong_is_one_line(tmp_path: Path) -> None:
    _, answers = session(tmp_path, *((name, arguments) for name, arguments, _ in WRONG))
    for answer, (*_, expected) in zip(answers, WRONG, strict=True):
        assert answer.is_error
        assert expected in said(answer)
        assert len(said(answer).splitlines()) == 1


SCRIPT = """\
import torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
"""


def test_an_agent_profiles_a_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    _, (answer,) = session(tmp_path, ("profile", {"script": "train.py", "timeout_s": 120}))
    assert not answer.is_error, said(answer)
    report = answer.structured_content
    assert report["script"] == str(tmp_path / "train.py")
    assert report["lines"] and report["steps"]["captured"] > 0
    assert len(said(answer)) < 60_000
