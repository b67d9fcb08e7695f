"""Distils a wide teacher into a narrow student; a hook on the teacher records the features that are matched."""
import torch
import torch.nn.functional as F
from torch import nn


class Recorder:
    """Keeps the output of one layer so that the loss can use it."""

    def __init__(self, module):
        self.outputs = []
        self.handle = module.register_forward_hook(self._save)

    def _save(self, module, inputs, output):
        self.outputs.append(output.detach())  # flaw: memory-growth

    @property
    def latest(self):
        return self.outputs[-1]


class Teacher(nn.Module):
    def __init__(self, inputs=24, width=1280, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.features(x))


class Student(nn.Module):
    def __init__(self, inputs=24, width=48, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        h = self.stem(x)
        return self.head(h), h


class Distiller:
    def __init__(self, groups=48, temperature=2.0):
        self.teacher = Teacher().eval().requires_grad_(False)
        self.student = Student(width=groups)
        self.recorder = Recorder(self.teacher.features)
        self.groups, self.temperature = groups, temperature
        self.project = nn.Linear(groups, 64)
        self.sketch = torch.randn(1280, 64) / 1280 ** 0.5
        params = [*self.student.parameters(), *self.project.parameters()]
        self.opt = torch.optim.AdamW(params, lr=1e-3, fused=True)

    def step(self, x):
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / self.temperature, -1)
            hint = self.recorder.latest @ self.sketch
        logits, hidden = self.student(x)
        soft = F.cross_entropy(logits / self.temperature, target)
        match = F.mse_loss(self.project(hidden), hint)
        loss = soft + 0.5 * match
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()


def main(steps=170, batch=4096):
    torch.manual_seed(31)
    distiller = Distiller()
    running = torch.zeros(())
    for _ in range(steps):
        running.lerp_(distiller.step(torch.randn(batch, 24)), 0.1)
    print("running loss", round(float(running), 4))


if __name__ == "__main__":
    main()
