"""One module per command, imported only when that command runs.

Each has a docstring (its help), ``configure(parser)`` to add its arguments, and
``run(options) -> int``, the exit status of the contract: 0, 1, 2 or 130. What a user can act on is
raised as :class:`warpline.model.problem.Problem`; ``__main__`` prints it as one line.
"""

from __future__ import annotations

#: command -> (module in this package, what it does in one line). In the order of the help.
COMMANDS = {
    "profile": ("profile", "run a script, measure its steps, print the cost of each line"),
    "attach": ("attach", "sample the lines of a running Python process (Linux)"),
    "show": ("show", "print an earlier run again"),
    "compare": ("compare", "compare two runs line by line"),
    "check": ("check", "check a run against budgets; SARIF and annotations for pull requests"),
    "fix": ("fix", "show, apply or measure the fixes of the newest run"),
    "tune": ("tune", "try the fixes alone and together, write a patch of the best set"),
    "plan": ("plan", "the fixes in the best order, with the gain of each after the earlier ones"),
    "kernel": ("kernel", "look inside one kernel with Nsight Compute"),
    "import": ("import_", "read traces made elsewhere into a run"),
    "ranks": ("ranks", "the ranks of a job side by side, from their traces or runs; with Dask if needed"),
    "export": ("export", "write a run for Perfetto or TensorBoard"),
    "report": ("report", "show a run by line, operator or kernel, or as one self-contained page"),
    "runs": ("runs", "list the runs of this project; --prune removes old ones"),
    "rules": ("rules", "list the rules"),
    "explain": ("explain", "show the page of one rule"),
    "mcp": ("mcp", "the findings for coding agents (Model Context Protocol over stdio)"),
    "doctor": ("doctor", "what this machine can measure, and how to get what is missing"),
    "server": ("server", "the language server"),
}
