'''The toolkit for rules.

A rule is one file in :mod:`warpline.rules` with one class; the file's name is the rule's name and
its module docstring is the rule's page. Nothing has to be registered. ``find`` looks at measured
cost first and at the source only to find the edit::

    """The script's first line: what is wrong, one sentence.

    ## What it does
    ## Why is this slow
    ## Example

    ```python
    #> device kind=cuda capability=(9,0); flags allow_tf32=false
    import torch

    total = 0.0
    for batch in loader:
        loss = model(batch)  #> cost device_ms=10
        total += loss.item()  #> found; cost cpu_ms=6 sync_ms=5; op aten::item count=1 cpu_ms=5
    ```

    ## Use instead

    ```python
    (the example's text after the first fix, to the letter; prose only when there is no edit)
    ```

    ## Fix safety
    ## References
    """

    class SyncInStep(Rule):
        area = "waiting"
        needs = ("kernels",)

        def find(self, context: Context) -> Iterator[Draft]:
            for cost in context.profile.lines:                    # evidence first
                if not context.matters(cost.sync_ms):
                    continue
                source = context.source(cost.file)                    # without text if it is gone
                call = source.call(cost.line, "item")
                yield context.draft(
                    cost.place,   # edit site; cause= is the hot line, where that is another
                    "The host waits {wait} for the device here.",      # no digits in a template:
                    {"wait": ms("sync wait", cost.sync_ms)},           # every number is evidence
                    cost_ms=cost.sync_ms,                              # below the threshold: dropped
                    saving_ms=cost.sync_ms,                            # bound of the gain
                    change=RemoveSyncs((cost.place,)),                 # warpline.model.change
                    fixes=[partial(fix, source, call)],                # a Fix, Refused, or advice as text
                )

    def fix(source, call):
        if call is None:
            raise Refused("the call is not on that line")
        edits = Edits(source)
        edits.replace(call, source.code(call.func.value) + ".detach()")
        return edits.fix("Add the loss up on the device", "safe")

Class attributes of a rule: ``area``, ``needs`` (capabilities of the device), ``covers``
(names of rules that say the same less well at the same lines), ``severity`` (else by the saving).

``Context``: ``profile``, ``step_ms``, ``device``, ``on_gpu``, ``cost(file, line)``, ``costs(places)``,
``costs_within(file, first, last)``, ``costs_of(source, node)``, ``sites(kind)``, ``share(ms)`` (percent),
``matters(ms)``, ``torch_version``,
``text(file)``, ``source(file)``, ``note(text)`` (abstain: say once why), ``draft(…)``, ``spent(metric, ms)``
(the evidence ``spent`` and ``share``), ``sources()``, ``calls(*names)`` of all files, ``each_step``.
``Spent`` (:mod:`warpline.rulekit.saving`): what work takes of lines: total, hottest, changes.

``Source`` (a parsed file): ``call(line, *names)``, ``calls``, ``at(line, *types)``,
``statement_at(line)``, ``statement(node)``, ``block(node)``, ``loops(node)``, ``enclosing(node, *types)``,
``ancestors``, ``parent``, ``scope(node)``, ``nodes(*types, within=node)``, ``uses(name, within)``,
``functions(name)``, ``span``, ``line``, ``code``, ``name(node)`` (dotted, imports resolved),
``is_named(node, *names)``, ``literal(node)``, ``argument(call, name,
position)``, ``unpacked(call)``.

``Edits(source)``: ``replace``, ``set_argument``, ``remove_argument``, ``insert_before``,
``insert_after``, ``replace_statement``, ``remove``, ``wrap(statements, "with x:")``,
``add_import("torch.nn.functional.gelu", "import torch.nn.functional as F")`` -> how to write it,
``fix(title, applicability, *edits of other files)``.

``origin(context, source, expression)``: where a value comes from (a constant, a config dict, an
argparse default, …), also through imports; see :mod:`warpline.rulekit.origins`.

``tests/rules/near_misses/RULE.md`` has prose and annotated code on which the rule stays silent; at least
one piece of it has no cost.

**Annotations** are comments ``#> clause; clause; …``: they say what a run measured on the example, and where
the rule finds something (``found``). They are no part of the text; ``tests/annotated.py`` has the grammar.
'''

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.rulekit.context import Context
    from warpline.rulekit.draft import Draft
    from warpline.rulekit.message import count, ms, percent, seconds, size
    from warpline.rulekit.origins import Origin
    from warpline.rulekit.rule import Rule
    from warpline.syntax.edits import Edits, Refused
    from warpline.syntax.source import NOT_LITERAL, Source

#: Imported when first asked for: a page can be read without LibCST being loaded.
_MODULES = {
    "warpline.rulekit.context": ("Context",),
    "warpline.rulekit.draft": ("Draft",),
    "warpline.rulekit.message": ("count", "ms", "percent", "seconds", "size"),
    "warpline.rulekit.origins": ("Origin",),
    "warpline.rulekit.rule": ("Rule",),
    "warpline.syntax.edits": ("Edits", "Refused"),
    "warpline.syntax.source": ("NOT_LITERAL", "Source"),
}

__all__ = [
    "NOT_LITERAL",
    "Context",
    "Draft",
    "Edits",
    "Origin",
    "Refused",
    "Rule",
    "Source",
    "count",
    "ms",
    "percent",
    "seconds",
    "size",
]


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)
