"""Config-driven training: everything is built from CONFIG by name (predicts defects of castings)."""
import functools
import inspect
import sys

import torch
from torch import nn

CONFIG = dict(
    seed=4,
    data=dict(type="Castings", parts=16384, probes=160, defects=24),
    batches=dict(type="Shuffled", rows=64),
    model=dict(
        type="Stack",
        stem=dict(type="Dense", inputs=160, outputs=512),
        trunk=[dict(type="Bottleneck", width=512, inner=512) for _ in range(5)],
        head=dict(type="Dense", inputs=512, outputs=24, act=None),
    ),
    loss=dict(type="BCEWithLogitsLoss"),
    optim=dict(type="AdamW", lr=6e-4, weight_decay=0.02, betas=(0.9, 0.98)),  # flaw: per-tensor-optimizer
    schedule=dict(type="CosineAnnealingLR", T_max=900, eta_min=1e-5),
    hooks=[dict(type="MeanLoss", each=100)],
    steps=900,
)


class Registry(dict):
    def __call__(self, thing=None, *, name=None):
        if thing is None:
            return functools.partial(self, name=name)
        self[name or thing.__name__] = thing
        return thing

    def adopt(self, module, base):
        for name, thing in vars(module).items():
            if inspect.isclass(thing) and issubclass(thing, base):
                self[name] = thing
        return self

    def build(self, spec, *args, **extra):
        spec = {**spec, **extra}
        return self[spec.pop("type")](*args, **spec)


DATA, LAYERS, HOOKS = Registry(), Registry(), Registry()
LOSSES = Registry().adopt(nn.modules.loss, nn.Module)
OPTIMS = Registry().adopt(torch.optim, torch.optim.Optimizer)
SCHEDULES = Registry().adopt(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler)
ACTS = {"relu": nn.ReLU, None: nn.Identity}


@LAYERS(name="Dense")
def dense(inputs, outputs, act="relu"):
    return nn.Sequential(nn.Linear(inputs, outputs), ACTS[act]())


@LAYERS
class Bottleneck(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.body = nn.Sequential(dense(width, inner), nn.Linear(inner, width))

    def forward(self, x):
        return x + self.body(self.norm(x))


@LAYERS
class Stack(nn.Sequential):
    def __init__(self, stem, trunk, head):
        super().__init__(*(LAYERS.build(spec) for spec in (stem, *trunk, head)))


@DATA
class Castings:
    def __init__(self, parts, probes, defects):
        causes = torch.randn(probes, defects) / probes**0.5
        self.readings = torch.randn(parts, probes)
        self.faulty = ((self.readings @ causes).tanh() + 0.3 * torch.randn(parts, defects) > 0.4).float()

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, rows):
        return self.readings[rows], self.faulty[rows]


@DATA
class Shuffled:
    def __init__(self, source, rows):
        self.source, self.rows = source, rows

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.source))
            yield from (self.source[part] for part in order.split(self.rows) if len(part) == self.rows)


@HOOKS
class MeanLoss:
    def __init__(self, each):
        self.each, self.sum = each, torch.zeros(())

    def after_step(self, runner):
        self.sum += runner.loss.detach()
        if runner.step % self.each == 0:
            print(f"[{runner.step:5d}] loss {self.sum.item() / self.each:.5f}", flush=True)
            self.sum.zero_()


class Runner:
    def __init__(self, cfg):
        torch.manual_seed(cfg["seed"])
        self.cfg, self.step = cfg, 0
        self.batches = DATA.build(cfg["batches"], DATA.build(cfg["data"]))
        self.model = LAYERS.build(cfg["model"])
        self.criterion = LOSSES.build(cfg["loss"])
        self.optim = OPTIMS.build(cfg["optim"], self.model.parameters())  # flaw: per-tensor-optimizer
        self.schedule = SCHEDULES.build(cfg["schedule"], self.optim)
        self.hooks = [HOOKS.build(spec) for spec in cfg["hooks"]]

    def train_step(self, readings, faulty):
        self.loss = self.criterion(self.model(readings), faulty)
        self.optim.zero_grad()
        self.loss.backward()
        self.optim.step()
        self.schedule.step()

    def run(self):
        for batch in self.batches:
            self.step += 1
            self.train_step(*batch)
            for hook in self.hooks:
                hook.after_step(self)
            if self.step == self.cfg["steps"]:
                return


if __name__ == "__main__":
    sys.exit(Runner(CONFIG).run())
