import torch
import torch.nn as nn
import torch.nn.functional as F


class Callback:
    def on_step_end(self, trainer): ...


class PrintLoss(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            print(trainer.step, trainer.loss.item())


class MemoryGuard(Callback):
    def on_step_end(self, trainer):
        if trainer.device == "cuda":
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step


class Matcher(nn.Module):
    def __init__(self, c=64, shifts=16):
        super().__init__()
        self.shifts = shifts
        self.feat = nn.Sequential(nn.Conv2d(3, c, 4, 4, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
        self.fuse = nn.Sequential(nn.Conv2d(2 * c, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, shifts, 1))

    def forward(self, left, right):
        both = self.feat(torch.cat([left, right]))
        a, b = both.chunk(2)
        return self.fuse(torch.cat([a, b], 1))


class Trainer:
    def __init__(self, callbacks, batch=48):
        torch.backends.cudnn.benchmark = True
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.callbacks, self.step = callbacks, 0
        self.net = Matcher().to(self.device, memory_format=torch.channels_last)
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-3, fused=True)
        make = lambda: torch.randn(batch, 3, 256, 256, device=self.device).to(memory_format=torch.channels_last)
        self.left, self.right = make(), make()
        self.disparity = torch.randint(0, 16, (batch, 64, 64), device=self.device)

    def fit(self, steps):
        for self.step in range(steps):
            with torch.autocast(self.device, torch.bfloat16):
                self.loss = F.cross_entropy(self.net(self.left, self.right), self.disparity)
            self.opt.zero_grad(set_to_none=True)
            self.loss.backward()
            self.opt.step()
            for c in self.callbacks:
                c.on_step_end(self)


if __name__ == "__main__":
    Trainer([PrintLoss(100), MemoryGuard()]).fit(400)
