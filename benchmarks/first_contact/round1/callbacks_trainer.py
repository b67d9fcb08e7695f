"""A trainer in the manner of Lightning: a module, callbacks and fit()."""
import torch
from torch import nn


class Callback:
    def on_step_end(self, trainer): ...


class Housekeeping(Callback):
    def on_step_end(self, trainer):
        if trainer.device.type == "cuda":
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step


class Progress(Callback):
    def on_step_end(self, trainer):
        if trainer.step % 100 == 0:
            print(f"step {trainer.step}: loss {trainer.loss.item():.3f}")


class Net(nn.Module):
    def __init__(self, dim=1024):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, 16, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 10)

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.head(self.enc(x).mean(1)), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-4, fused=True)


class Trainer:
    def __init__(self, max_steps, callbacks):
        self.max_steps, self.callbacks, self.step = max_steps, callbacks, 0
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def fit(self, module, batches):
        module.to(self.device)
        optimizer = module.configure_optimizers()
        batches = [tuple(t.to(self.device) for t in b) for b in batches]
        while self.step < self.max_steps:
            with torch.autocast(self.device.type, torch.bfloat16):
                self.loss = module.training_step(batches[self.step % len(batches)])
            optimizer.zero_grad()
            self.loss.backward()
            optimizer.step()
            self.step += 1
            for c in self.callbacks:
                c.on_step_end(self)


Trainer(320, [Housekeeping(), Progress()]).fit(
    Net(), [(torch.randn(16, 256, 1024), torch.randint(10, (16,))) for _ in range(4)]
)
