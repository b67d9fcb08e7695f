"""Tries what samples of a loader would be in a worker: how many cores making them keeps busy, and whether
they are the same again in each epoch, so that they could be kept.

Once the steps are measured, a forked child gets some samples several times, as a loader's worker would. What
that does to counters and random numbers stays in the child. It happens only where the script is ended next:
parent and child share the positions of open files.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from statistics import median
from time import monotonic, perf_counter, process_time_ns, thread_time_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ....wire.memory import free_bytes
from .. import seeds

if TYPE_CHECKING:
    from .batches import Spent

#: Loaders that are tried, samples of each, and how often they are got. A sample that is changed in one case
#: of ten, by random numbers that we do not see drawn, escapes in one trial of 20,000. Chosen, not fitted.
LOADERS, SAMPLES, ROUNDS = 2, 32, 3
#: With fewer samples than this in the time that there is for a round, the trial answers nothing.
FEWEST, ROUND_S = 8, 0.5
#: How long a child may take in all.
LIMIT_S = 5.0
#: Samples that take less than this part of the first time when they are got again were kept by the dataset;
#: not those that take less than ``QUICK_S`` anyway, as of a list.
KEPT, QUICK_S = 0.5, 1e-5
#: From this part of a core on that other threads keep busy while a batch is loaded, the child tells whether
#: they would in a worker: torch's have nothing to do there, those of other libraries go on. Chosen.
BESIDE = 0.25
#: The part of the free memory that all samples may take. While they are made they take it twice.
MEMORY_SHARE = 0.1
#: Batches of rows that are timed, from a table of at most so many bytes.
BATCHES, TABLE_BYTES = 20, 1 << 26


def try_them(torch: ModuleType, loaders: Iterable[Spent]) -> None:
    """Add to the facts of the loaders that the steps wait for what a trial finds. Raises nothing."""
    if sys.platform != "linux":
        return
    waited = [spent for spent in loaders if spent.entry[3].get("wait_ms")]
    for spent in sorted(waited, key=lambda spent: -spent.entry[3]["wait_ms"])[:LOADERS]:
        with suppress(Exception):
            loader = spent.entry[2]()
            length = spent.entry[3].get("dataset_length")  # as the loader was made
            if loader is None or length != len(loader.dataset):
                continue
            keep = _can_be_kept(torch, loader)
            if keep or _is_crowded(torch, loader, spent):
                spent.entry[3].update(_answer(torch, loader, keep))


def _can_be_kept(torch: ModuleType, loader: Any) -> bool:
    """Whether the loader asks a dataset of known length for samples, and makes batches of them in torch's own
    way."""
    data = torch.utils.data
    return (
        type(loader) is data.DataLoader
        and not isinstance(loader.dataset, data.IterableDataset)
        and loader.collate_fn is getattr(data, "default_collate", None)
        and loader.batch_size is not None
        and len(loader.dataset) > loader.batch_size
        and type(loader.dataset) is not range
        and not any(_is_more(torch, dataset) for dataset in _within(torch, loader.dataset))
    )


def _is_crowded(torch: ModuleType, loader: Any, spent: Spent) -> bool:
    """Whether other threads work while the main process loads samples, which a worker could get by row."""
    by_row = not isinstance(loader.dataset, torch.utils.data.IterableDataset)
    return by_row and not loader.num_workers and bool(spent.batches) and spent.threads_beside() > BESIDE


def _within(torch: ModuleType, dataset: Any) -> Iterator[Any]:
    """The dataset, and what it is a Subset of."""
    while isinstance(dataset, torch.utils.data.Subset):
        yield dataset
        dataset = dataset.dataset
    yield dataset


def _state(dataset: Any) -> dict[str, Any]:
    return getattr(dataset, "__dict__", {})  # a list has none


def _is_more(torch: ModuleType, dataset: Any) -> bool:
    """Whether a dataset makes batches itself, or may make samples with a network that is trained."""
    if hasattr(dataset, "__getitems__") and not isinstance(dataset, torch.utils.data.Subset):
        return True
    networks = [one for one in _state(dataset).values() if isinstance(one, torch.nn.Module)]
    return any(weight.requires_grad for one in networks for weight in one.parameters())


def _answer(torch: ModuleType, loader: Any, keep: bool) -> dict[str, Any]:
    """What the child says in time."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads, which workers are as well
        child = os.fork()
    if child == 0:
        try:
            for facts in _tried(torch, loader, keep):
                os.write(writing, json.dumps(facts).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    told, deadline = b"", monotonic() + LIMIT_S
    try:
        while select.select([reading], [], [], max(0.0, deadline - monotonic()))[0]:
            more = os.read(reading, 1 << 16)
            if not more:
                break
            told += more
    finally:
        os.close(reading)
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(child, 0)
    return {name: value for line in told.split(b"\n")[:-1] for name, value in json.loads(line).items()}


def _names(torch: ModuleType, dataset: Any) -> list[str]:
    return list(dict.fromkeys(name for one in _within(torch, dataset) for name in _state(one)))


def _tried(torch: ModuleType, loader: Any, keep: bool) -> Iterator[dict[str, Any]]:
    """Yield ``worker_cores``; with ``keep`` also ``sample_form`` and the facts beside it, unless samples
    differ or do not fit. Runs in the child."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    torch.set_num_threads(1)  # the threads of the parent's pool are not here
    dataset = loader.dataset
    last = len(dataset) - 1
    rows = sorted({round(at * last / (SAMPLES - 1)) for at in range(SAMPLES)})
    whole, own = process_time_ns(), thread_time_ns()
    samples, _ = _got(dataset, [(row + 1) % (last + 1) for row in rows])  # the first touch of pages is slow
    with suppress(Exception):  # it may need as many samples as a batch has
        loader.collate_fn(samples)
    del samples  # the rounds get their memory, which was touched
    whole, own = process_time_ns() - whole, thread_time_ns() - own
    yield {"worker_cores": whole / max(1, own)}
    if keep:
        yield _kept(torch, loader, rows)


def _kept(torch: ModuleType, loader: Any, rows: list[int]) -> dict[str, Any]:
    """``sample_form`` and the facts beside it; {} where samples of ``rows`` differ or do not fit."""
    dataset = loader.dataset
    first, took, form = None, [], ""
    for turn in range(ROUNDS):
        seeds.plant(torch, turn)
        before = _random_states(torch)
        samples, times = _got(dataset, rows)
        rows = rows[: len(samples)]
        form, parts = _parts(torch, samples)
        del samples
        if len(rows) < FEWEST or not form or _random_states(torch) != before:
            return {}
        if first is None:
            first = parts
        if not all(map(torch.equal, first, parts)):
            return {}
        took.append(median(times))
    size = sum(part.numel() * part.element_size() for part in parts) // len(rows)
    free = free_bytes()
    kept = took[0] > QUICK_S and max(took[1:]) < KEPT * took[0]
    if kept or free is None or size * len(dataset) > MEMORY_SHARE * free:
        return {}
    return {
        "sample_form": form,
        "sample_bytes": size,
        "sample_ms": 1e3 * median(took),
        "rows_ms": 1e3 * _indexed_s(torch, loader, parts, size),
        "dataset_names": _names(torch, dataset),
    }


def _random_states(torch: ModuleType) -> list[Any]:
    numpy = sys.modules.get("numpy")
    of_numpy = list(numpy.random.get_state()) if numpy is not None else []
    plain = [one.tolist() if hasattr(one, "tolist") else one for one in of_numpy]
    return [random.getstate(), torch.get_rng_state().tolist(), *plain]


def _got(dataset: Any, rows: Sequence[int]) -> tuple[list[Any], list[float]]:
    """Samples of ``rows``, as many as there is time for, and the seconds that each took."""
    samples: list[Any] = []
    times: list[float] = []
    for row in rows:
        began = perf_counter()
        samples.append(dataset[row])
        times.append(perf_counter() - began)
        if sum(times) > ROUND_S:
            break
    return samples, times


def _parts(torch: ModuleType, samples: list[Any]) -> tuple[str, list[Any]]:
    """``(sample_form, tensors)`` of one batch of ``samples``; "" where they are something else, or not all of
    one kind. Raises what torch raises for samples of different shapes."""
    kind = type(samples[0])
    batch = torch.utils.data.default_collate(samples)
    form, parts = "", []  # type: tuple[str, list[Any]]
    if isinstance(batch, torch.Tensor):
        form, parts = "tensor", [batch]
    elif kind in (tuple, list):
        form, parts = "list", list(batch)
    elif kind is dict:
        form, parts = "dict", list(batch.values())
    plain = all(
        isinstance(part, torch.Tensor)
        and (part.device.type, part.layout, part.requires_grad) == ("cpu", torch.strided, False)
        and len(part) == len(samples)
        for part in parts
    )
    return (form, parts) if plain and len({_kind(one) for one in samples}) == 1 else ("", [])


def _kind(sample: Any) -> tuple[Any, ...]:
    """The types that a batch's depend on."""
    values = [sample]
    if isinstance(sample, (tuple, list)):
        values += sample
    if isinstance(sample, dict):
        values += [*sample, *sample.values()]
    return tuple(one if isinstance(one, str) else (type(one), getattr(one, "dtype", None)) for one in values)


def _indexed_s(torch: ModuleType, loader: Any, parts: list[Any], size: int) -> float:
    """Seconds that a loader needs for a batch of rows of a table of such samples, in random order."""
    batch = loader.batch_size
    count = min(len(loader.dataset), max(batch, TABLE_BYTES // max(1, size)))
    order = torch.arange(count) % len(parts[0])
    table = [part[order] for part in parts]
    rows = torch.utils.data.DataLoader(
        range(count), batch_size=batch, shuffle=True, collate_fn=lambda rows: [part[rows] for part in table]
    )
    times: list[float] = []
    while len(times) < BATCHES and sum(times) < ROUND_S:
        began = perf_counter()
        for _ in rows:
            times.append(perf_counter() - began)
            if len(times) >= BATCHES:
                break
            began = perf_counter()
    return median(times)
