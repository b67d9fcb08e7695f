"""2k time trial prediction from ergometer sessions, with callbacks in the manner of Keras."""
import time

import torch
import torch.nn.functional as F
from torch import nn


# ---------------------------------------------------------------- layers
class AffineNorm(nn.Module):
    """Zero mean and unit variance over the features of each sample, then a learned scale and shift."""

    def __init__(self, features, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, self.epsilon)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = AffineNorm(width)
        self.dense = nn.Linear(width, width)
        self.out_norm = AffineNorm(width)

    def forward(self, x):
        return self.out_norm(x + F.relu(self.dense(self.norm(x))))


def build_model(inputs, width=128, depth=4):
    return nn.Sequential(
        nn.Linear(inputs, width), *[Residual(width) for _ in range(depth)], nn.Linear(width, 1), nn.Flatten(0)
    )


# ---------------------------------------------------------------- callbacks
class Callback:
    def on_train_begin(self, state): ...
    def on_batch_end(self, state): ...
    def on_epoch_end(self, state): ...


class History(Callback):
    def on_train_begin(self, state):
        self.losses = []

    def on_batch_end(self, state):
        self.losses.append(state["loss"])


class ProgbarLogger(Callback):
    def on_train_begin(self, state):
        self.started = time.perf_counter()

    def on_epoch_end(self, state):
        spent = time.perf_counter() - self.started
        recent = state["history"].losses[-state["batches"]:]
        print(f"Epoch {state['epoch'] + 1}/{state['epochs']} - {spent:.1f}s - loss: {sum(recent) / len(recent):.4f}")


class WarmupDecay(Callback):
    def __init__(self, peak, warmup, decay=0.998):
        self.peak, self.warmup, self.decay = peak, warmup, decay

    def on_batch_end(self, state):
        step = state["step"]
        lr = self.peak * min(1.0, step / self.warmup) * self.decay ** max(0, step - self.warmup)
        for group in state["optimizer"].param_groups:
            group["lr"] = lr


# ---------------------------------------------------------------- data
def sessions(n, features=40, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=g)
    weight = torch.randn(features, generator=g) / features**0.5
    y = torch.sin(x @ weight * 2) + 0.3 * x[:, 0] * x[:, 1] + 0.05 * torch.randn(n, generator=g)
    return x, y


def fit(model, x, y, epochs, batch_size, callbacks):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    state = {"optimizer": optimizer, "epochs": epochs, "step": 0, "history": callbacks[0]}
    for cb in callbacks:
        cb.on_train_begin(state)
    for epoch in range(epochs):
        chunks = torch.randperm(len(x)).split(batch_size)
        state.update(epoch=epoch, batches=len(chunks))
        for rows in chunks:
            loss = F.l1_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state.update(loss=loss.item(), step=state["step"] + 1)
            for cb in callbacks:
                cb.on_batch_end(state)
        for cb in callbacks:
            cb.on_epoch_end(state)
    return callbacks[0]


if __name__ == "__main__":
    torch.manual_seed(7)
    x, y = sessions(30_720)
    net = build_model(x.shape[1])
    hist = fit(net, x, y, epochs=18, batch_size=1024, callbacks=[History(), WarmupDecay(2e-3, 40), ProgbarLogger()])
    print("best batch", round(min(hist.losses), 4))
