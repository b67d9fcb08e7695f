"""Loaders over rows of tensors: an edit that takes each batch as a whole, and not sample by sample.

``DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), 64, False))`` gives the dataset
the list of a batch's rows. The batches are the same: torch's own sampler draws the rows in the same order
from the same random numbers, and what is made of a batch keeps its type.
"""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.loaders import loader_call
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

#: DataLoader's parameters in order, as far as they may be passed by position here.
_ORDER = ("dataset", "batch_size", "shuffle")
#: Those that this edit understands, or that mean the same afterwards.
_KEPT = {"dataset", "num_workers", "pin_memory", "pin_memory_device", "generator", "timeout"}
_REPLACED = {"batch_size", "shuffle", "drop_last"}
#: What such a loader lacks, or has in another form.
_LACKS = ("batch_size", "batch_sampler", "sampler", "collate_fn", "drop_last")
#: Libraries that make a loader again from its parts.
_REMAKE = {"accelerate", "lightning", "pytorch_lightning", "transformers", "ignite"}
_DATA = "torch.utils.data"
#: Methods that do the same to a batch as to each of its rows.
_ROW_BY_ROW = {"float", "double", "half", "bfloat16", "long", "int", "bool", "clone", "contiguous"}


def are_rows(context: Context, site: Site) -> bool:
    """Whether the dataset gives rows of tensors in the host's memory, so that it takes a list of rows too: a
    ``TensorDataset``, or a class whose ``__getitem__`` only indexes its tensors; also a Subset of one."""
    loader = facts_of(Loader, site)
    if "TensorDataset" in (loader.dataset_type, loader.rows_type):
        return True
    if loader.rows_file not in context.profile.sources or not loader.rows_line:
        return False
    source = context.source(loader.rows_file)
    for function in source.at(loader.rows_line, cst.FunctionDef)[:1]:
        *before, last = function.body.body
        parameters = [one.name.value for one in function.params.params]
        returned = alone(last)
        documented = not before or (len(before) == 1 and function.get_docstring() is not None)
        if isinstance(returned, cst.Return) and documented and len(parameters) == 2:
            values = _values(returned.value)
            tensors = set(loader.rows_tensors or ())
            return bool(values) and all(_is_row(source, one, parameters, tensors) for one in values)
    return False


def takes_whole(site: Site) -> bool:
    """Whether the loader gives its dataset all rows of a batch at once: ``batch_size=None``."""
    return any(one.name == "batch_size" and one.passed and one.value is None for one in site.arguments)


def _values(returned: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """What a sample is made of; [] where default collation and conversion may differ in type."""
    if isinstance(returned, (cst.Tuple, cst.List)):
        return [one.value for one in returned.elements if isinstance(one, cst.Element)]
    if isinstance(returned, cst.Dict):
        return [one.value for one in returned.elements]
    return [returned] if returned is not None else []


def _is_row(source: Source, value: cst.BaseExpression, parameters: list[str], tensors: set[str]) -> bool:
    """Whether ``value`` is ``self.x[i]`` with ``x`` in ``tensors``, perhaps with ``.float()`` behind it."""
    while isinstance(value, cst.Call) and not value.args and isinstance(value.func, cst.Attribute):
        if value.func.attr.value not in _ROW_BY_ROW:
            return False
        value = value.func.value
    if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Attribute):
        return False
    owner, index = parameters
    held = value.value
    return (
        source.code(held.value) == owner
        and held.attr.value in tensors
        and [source.code(one.slice) for one in value.slice] == [index]
    )


def whole_batches(context: Context, site: Site) -> Fix:
    """Batches of rows (see :func:`are_rows`) by one index each. Raises Refused."""
    source, call = loader_call(context, site)
    if not source.is_named(call.func, "DataLoader"):
        raise Refused("the loader is made by a class or function of its own")
    given = source.arguments(call, _ORDER)
    if given is None:
        raise Refused("the call unpacks its arguments, or passes many by position")
    if "dataset" not in given:
        raise Refused("the call does not pass the dataset")
    if unknown := set(given) - _KEPT - _REPLACED:
        raise Refused(f"the call passes `{sorted(unknown)[0]}`")
    _check_reads(context, source, call)
    edits = Edits(source)
    data = named(source, edits, call, given["dataset"].value)
    edits.replace(given["dataset"].value, data)
    size = _code(source, given, "batch_size", "1")
    dropped = _code(source, given, "drop_last", "False")
    names = Names(source, edits, call)
    batches, rows = names.of("BatchSampler"), _sampler(source, names, given, data)
    names.add()
    _put(edits, call, given, f"{batches}({rows}, {size}, {dropped})")
    return edits.fix("Take whole batches from the tensors", "safe")


def _check_reads(context: Context, source: Source, call: cst.Call) -> None:
    """Raises Refused where other code may read what the loader has no more, or a library makes it again."""
    holders = names_of(source, call)
    for other in context.sources():
        for statement in other.nodes(cst.Import, cst.ImportFrom):
            words = set(other.code(statement).replace(".", " ").replace(",", " ").split())
            if words & _REMAKE:
                raise Refused(f"`{sorted(words & _REMAKE)[0]}` makes loaders again from their parts")
        for read in other.nodes(cst.Attribute):
            base = other.name(read.value).rpartition(".")[2]
            if read.attr.value in _LACKS and (base in holders or "loader" in base.lower()):
                raise Refused(f"`{other.code(read)}` is read, which such a loader lacks")


def names_of(source: Source, call: cst.Call) -> set[str]:
    """The last names that ``call`` gives the loader, and ``loader``."""
    assign = source.parent(call)
    targets = assign.targets if isinstance(assign, cst.Assign) else ()
    return {"loader", *(source.name(one.target).rpartition(".")[2] for one in targets)}


def own_statement(source: Source, call: cst.Call) -> cst.SimpleStatementLine | None:
    """The statement of ``call``, alone on its line; None in a comprehension or lambda, which makes others."""
    statement = source.statement(call)
    inner = source.enclosing(call, cst.Lambda, cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp)
    plain = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 and inner is None
    return statement if plain and isinstance(statement, cst.SimpleStatementLine) else None


def named(source: Source, edits: Edits, call: cst.Call, data: cst.BaseExpression) -> str:
    """The dataset's name: not only the call reads it. One that is made in the call gets a name above it, for
    the call to take. Raises Refused."""
    if isinstance(data, (cst.Name, cst.Attribute)):
        return source.code(data)
    statement = own_statement(source, call)
    used = {node.value for node in source.nodes(cst.Name) if source.is_value(node)}
    name = next((word for word in ("dataset", "samples", "rows") if word not in used), None)
    if statement is None or name is None:
        raise Refused("the dataset is made within the call: give it a name first")
    edits.insert_before(statement, f"{name} = {source.code(data)}")
    return name


def _code(source: Source, given: dict[str, cst.Arg], name: str, usual: str) -> str:
    return source.code(given[name].value) if name in given else usual


class Names:
    """Names of ``torch.utils.data`` as this file writes them: beside ``DataLoader``, which it has."""

    def __init__(self, source: Source, edits: Edits, call: cst.Call) -> None:
        self.source, self.edits = source, edits
        self.dotted = source.code(call.func).rpartition(".")[0]
        self.added: list[str] = []

    def of(self, name: str) -> str:
        """How this file writes it. Raises Refused where it has that name for something else."""
        if self.dotted:
            return f"{self.dotted}.{name}"
        known = [one for one in self.source.nodes(cst.Name) if one.value == name]
        if any(self.source.name(one) != f"{_DATA}.{name}" for one in known):
            raise Refused(f"the name `{name}` means something else in this file")
        if not known and name not in self.added:
            self.added.append(name)
        return name

    def add(self) -> None:
        """Import what is new where ``DataLoader`` is imported. Raises Refused where that is not seen."""
        if not self.added:
            return
        for statement in self.source.nodes(cst.ImportFrom):
            if self.source.name(statement.module) == _DATA and not isinstance(
                statement.names, cst.ImportStar
            ):
                first = statement.names[0].name
                self.edits.replace(first, ", ".join([*self.added, self.source.code(first)]))
                return
        raise Refused("the import of `DataLoader` was not found")


def _sampler(source: Source, names: Names, given: dict[str, cst.Arg], data: str) -> str:
    """The sampler that ``DataLoader`` would make."""

    def made(name: str) -> str:
        generator = f", generator={source.code(given['generator'].value)}" if "generator" in given else ""
        more = generator if name == "RandomSampler" else ""
        return f"{names.of(name)}({data}{more})"

    if "shuffle" not in given:
        return made("SequentialSampler")
    shuffled = source.literal(given["shuffle"].value)
    if isinstance(shuffled, bool) or source.code(given["shuffle"].value) == "None":
        return made("RandomSampler" if shuffled else "SequentialSampler")
    return (
        f"{made('RandomSampler')} if {source.code(given['shuffle'].value)} else {made('SequentialSampler')}"
    )


def _put(edits: Edits, call: cst.Call, given: dict[str, cst.Arg], sampler: str) -> None:
    """Replace ``batch_size``, ``shuffle`` and ``drop_last`` by ``batch_size=None`` and the sampler."""
    for name in ("batch_size", "shuffle"):
        if name in given and given[name].value.lpar:
            raise Refused(f"`{name}` is in brackets")
    size, shuffle = given.get("batch_size"), given.get("shuffle")
    if size is not None:
        edits.replace(size, "batch_size=None")
    if shuffle is not None:
        edits.replace(shuffle, f"sampler={sampler}")
    else:
        edits.set_argument(call, "sampler", sampler)
    if size is None:
        edits.set_argument(call, "batch_size", "None")
    edits.remove_argument(call, "drop_last")
