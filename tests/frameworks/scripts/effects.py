"""Runs a script and prints, as the last line, what its steps did: run by the tests with and without an edit.

    python effects.py SCRIPT

Standard library and torch only. A JSON object: dtypes of the first factor of matrix products, how attention
is computed, checks for NaN, concatenations, the loaders' settings, fused optimizers, what was compiled, and
the largest size of a product.
"""

import collections
import json
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = ("aten.mm", "aten.addmm", "aten.bmm")
found = {"products": collections.Counter(), "operators": collections.Counter(), "loaders": [], "fused": []}
found["compiled"], found["largest"] = [], 0


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = str(function).rpartition(".")[0]
        if name in PRODUCTS:
            found["products"][str(arguments[-1].dtype).replace("torch.", "")] += 1
            found["largest"] = max(found["largest"], *arguments[-1].shape)
        elif name in ("aten._softmax", "aten.cat", "aten.isnan") or "attention" in name:
            found["operators"][name] += 1
        return function(*arguments, **(named or {}))


def watch_loaders():
    loader = torch.utils.data.DataLoader
    original = loader.__iter__

    def __iter__(self):
        size = getattr(self.batch_sampler, "batch_size", self.batch_size)
        found["loaders"].append([self.num_workers, self.pin_memory, self.persistent_workers, size])
        return original(self)

    loader.__iter__ = __iter__


def watch_optimizers():
    def note(optimizer, arguments, named):
        fused = bool(optimizer.param_groups[0].get("fused"))
        if fused not in found["fused"]:
            found["fused"].append(fused)

    register_optimizer_step_pre_hook(note)


def watch_compiling():
    """What would be compiled is noted and left as it is: no test waits for a C++ compiler."""

    def compile(model=None, **named):
        if model is None:
            return lambda function: compile(function, **named)
        found["compiled"].append(type(model).__name__)
        return model

    def of_module(self, *arguments, **named):
        found["compiled"].append(type(self).__name__)

    torch.compile = compile
    torch.nn.Module.compile = of_module


if __name__ == "__main__":
    script = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    watch_loaders()
    watch_optimizers()
    watch_compiling()
    with Watch():
        runpy.run_path(script, run_name="__main__")
    print("\n" + json.dumps(found))
