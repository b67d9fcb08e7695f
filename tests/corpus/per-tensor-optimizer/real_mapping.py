# corpus: run, may launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step
from dataclasses import dataclass, field

from torch import nn, optim, randn


@dataclass
class Plan:
    depth: int = 32
    optimizer: type = optim.AdamW
    settings: dict = field(default_factory=lambda: {"lr": 3e-4, "weight_decay": 0.01})  #> found


class Session:
    def __init__(self, plan):
        self.net = nn.Sequential(*(nn.Linear(128, 128) for _ in range(plan.depth)))
        self.optimizer = plan.optimizer(self.net.parameters(), **plan.settings)

    def run(self):
        data = randn(16, 128)
        for _ in range(4000):
            self.optimizer.zero_grad()
            self.net(data).square().mean().backward()
            self.optimizer.step()


Session(Plan()).run()
