"""The MCP server: one tool per command. No tool writes to the user's sources."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.types import ToolAnnotations
from pydantic import Field

from warpline import __version__
from warpline.agents import answers, cli
from warpline.agents.answers import Json
from warpline.agents.calls import Server

#: Seconds that a command which only reads may take.
READING_S = 120.0
#: How much longer than its own limit a command that runs the script may take.
ENDING_S = 60.0

INSTRUCTIONS = """Find out why a PyTorch script is slow, and prove what a change gains.
1. profile(script) runs the script for a few steps: which source lines cost the time, and what to change.
2. plan(script) puts the fixes in order; fix_diff(script, rule) shows one as a patch. You apply it.
3. measure(script, rule) times the script with and without a fix: believe this, not the prediction.
profile, plan and measure run the user's script. Ask the user before the first of these calls."""

Script = Annotated[str, Field(description="path of the script, or the name of a module with module=true")]
Arguments = Annotated[list[str], Field(description="the script's own arguments")]
Module = Annotated[bool, Field(description="run it as python -m does")]
Run = Annotated[str, Field(description="a run folder; empty: the newest run")]
Rule = Annotated[str, Field(description="only this rule's fixes, e.g. loader-without-workers")]
Line = Annotated[int, Field(description="only fixes at this line; 0: any", ge=0)]

_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

server = Server("warpline", version=__version__, instructions=INSTRUCTIONS)


def _target(script: str, arguments: list[str], module: bool) -> list[str]:
    return [*(["-m"] if module else []), script, *arguments]


def _choice(rule: str, line: int) -> list[str]:
    return [*(["--rule", rule] if rule else []), *(["--line", str(line)] if line else [])]


@server.tool(annotations=_RUNS)
async def profile(
    script: Script,
    arguments: Arguments = [],  # noqa: B006  # never changed; the schema shows it
    module: Module = False,
    python: Annotated[str, Field(description="interpreter to run it with; empty: chosen automatically")] = "",
    timeout_s: Annotated[float, Field(description="limit in seconds", gt=0, le=3600)] = 600,
) -> Json:
    """Run a PyTorch script for a few steps: the cost of its lines, what is slow and why, predicted gains."""
    options = ["--json", "-", "--timeout", str(timeout_s), *(["--python", python] if python else [])]
    words = ["profile", *options, *_target(script, arguments, module)]
    return answers.summary(await cli.answer(words, timeout_s + ENDING_S))


@server.tool(annotations=_READS)
async def report(run: Run = "") -> Json:
    """The summary of an earlier run."""
    return answers.summary(await _report(run))


@server.tool(annotations=_READS)
async def finding(id: Annotated[str, Field(description="from profile or report")], run: Run = "") -> Json:
    """One finding in full: evidence, and its fixes as edits. Raises Failed if the run lacks it."""
    found = answers.finding(await _report(run), id)
    if found is None:
        raise cli.Failed(f"this run has no finding {id}")
    return found


@server.tool(annotations=_READS)
async def fix_diff(
    script: Script,
    arguments: Arguments = [],  # noqa: B006  # never changed; the schema shows it
    module: Module = False,
    rule: Rule = "",
    line: Line = 0,
) -> str:
    """The fixes of the newest run of a script as a unified diff; nothing is written."""
    words = ["fix", "--diff", *_choice(rule, line), *_target(script, arguments, module)]
    return answers.text(await cli.output(words, READING_S))


@server.tool(annotations=_RUNS)
async def measure(
    script: Script,
    arguments: Arguments = [],  # noqa: B006  # never changed; the schema shows it
    module: Module = False,
    rule: Rule = "",
    line: Line = 0,
    budget_s: Annotated[
        float, Field(description="time limit in seconds for everything", gt=0, le=3600)
    ] = 300,
) -> Json:
    """Time the script with and without each fix, in turn: the gain with its 95 % interval."""
    options = ["--json", "-", "--budget", str(budget_s)]
    words = ["fix", "--measure", *options, *_choice(rule, line), *_target(script, arguments, module)]
    return answers.trials(await cli.answer(words, 1.1 * budget_s + ENDING_S))


@server.tool(annotations=_READS)
async def plan(script: Script, arguments: Arguments = [], module: Module = False) -> Json:  # noqa: B006  # never changed; the schema shows it
    """The fixes in the order to make them, each with what it gains after those before it, and the floor."""
    words = ["plan", "--json", "-", *_target(script, arguments, module)]
    found: Json = await cli.answer(words, READING_S)
    return found


@server.tool(annotations=_READS)
async def runs() -> Json:
    """The runs of this project, the newest first."""
    found: Json = await cli.answer(["runs", "--json", "-"], READING_S)
    return {**found, "runs": found["runs"][: answers.LINES]}


@server.tool(annotations=_READS)
async def explain(rule: Annotated[str, Field(description="a rule's name")]) -> str:
    """A rule's page: what it looks for, why it is slow, what to write instead, whether values change."""
    return answers.text(await cli.output(["explain", rule], READING_S))


async def _report(run: str) -> Any:
    return await cli.answer(["show", "--json", "-", *([run] if run else [])], READING_S)
