import torch as th
import torch.nn as nn
import torch.nn.functional as F


def encoder(d_in, d, d_out):
    return nn.Sequential(nn.Linear(d_in, d), nn.GELU(), nn.Linear(d, d), nn.GELU(), nn.Linear(d, d), nn.GELU(), nn.Linear(d, d_out))


class CLIPish(nn.Module):
    def __init__(self, d=3072, out=512):
        super().__init__()
        self.image, self.text = encoder(1024, d, out), encoder(768, d, out)
        self.log_scale = nn.Parameter(th.tensor(2.6))

    def forward(self, a, b):
        a, b = F.normalize(self.image(a), dim=-1), F.normalize(self.text(b), dim=-1)
        return self.log_scale.exp() * a @ b.t()


class Trainer:
    def __init__(self, batch=8192):
        self.dev = "cuda" if th.cuda.is_available() else "cpu"
        self.net = CLIPish().to(self.dev)
        self.opt = th.optim.AdamW(self.net.parameters(), 1e-4, fused=True)
        self.gold = th.arange(batch, device=self.dev)
        self.images = th.randn(3, batch, 1024, device=self.dev, dtype=th.bfloat16)
        self.texts = th.randn(3, batch, 768, device=self.dev, dtype=th.bfloat16)

    def step(self, i):
        with th.autocast(self.dev, dtype=th.bfloat16):
            scores = self.net(self.images[i % 3], self.texts[i % 3])
            loss = (F.cross_entropy(scores, self.gold) + F.cross_entropy(scores.t(), self.gold)) / 2
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()


if __name__ == "__main__":
    trainer = Trainer()
    for i in range(500):
        loss = trainer.step(i)
        if i % 100 == 0:
            print(i, loss.item())
