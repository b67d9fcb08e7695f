# %% [markdown]
# # Gauge forecasts, free running
# A GRU cell is warmed up on past gauges, then runs freely: each hour's discharge is input of the next one.

# %%
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20)
GAUGES, RAIN, HIDDEN = 48, 16, 128
PAST, AHEAD, BATCH = 24, 18, 48
EPOCHS, HELD_OUT = 12, 400

# %% A made-up catchment: rain comes in bursts, rivers are leaky reservoirs in a chain
hours = 6000
rain = torch.relu(torch.randn(hours, RAIN) - 1.2) * 3
route = torch.rand(RAIN, GAUGES).pow(4)
inflow = rain @ route
level, levels = torch.zeros(GAUGES), []
for now in inflow.unbind():
    level = 0.93 * level + 0.05 * level.roll(1) + now
    levels.append(level)
flow = torch.stack(levels)
flow = (flow - flow.mean(0)) / flow.std(0)
rain_seen = (rain - rain.mean(0)) / rain.std(0)

# %% Windows are views; a batch is one gather of them
span = PAST + AHEAD
flow_windows = flow.unfold(0, span, 1).transpose(1, 2)
rain_windows = rain_seen.unfold(0, span, 1).transpose(1, 2)
train_starts = torch.arange(len(flow_windows) - HELD_OUT - span)
test_starts = torch.arange(len(flow_windows) - HELD_OUT, len(flow_windows))


# %%
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.past = nn.GRU(GAUGES + RAIN, HIDDEN, batch_first=True)
        self.cell = nn.GRUCell(GAUGES + RAIN, HIDDEN)
        self.change = nn.Linear(HIDDEN, GAUGES)

    def forward(self, seen, forcing):
        _, state = self.past(seen)
        state = state[0]
        level = seen[:, -1, :GAUGES]
        out = []
        for drops in forcing.unbind(1):
            state = self.cell(torch.cat([level, drops], 1), state)
            level = level + self.change(state)
            out.append(level)
        return torch.stack(out, 1)


def take(starts):
    levels, drops = flow_windows[starts], rain_windows[starts]
    seen = torch.cat([levels[:, :PAST], drops[:, :PAST]], 2)
    return seen, drops[:, PAST:], levels[:, PAST:]


model = Forecaster()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3, fused=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=EPOCHS * (len(train_starts) // BATCH))


# %%
@torch.inference_mode()
def skill():
    """Nash-Sutcliffe efficiency of each lead time on the held-out winter."""
    made, real = [], []
    for starts in test_starts.split(200):
        seen, forcing, target = take(starts)
        made.append(model(seen, forcing))
        real.append(target)
    made, real = torch.cat(made), torch.cat(real)
    error = (made - real).square().mean((0, 2))
    return 1 - error / (real - real.mean((0, 1))).square().mean((0, 2))


# %%
for epoch in range(EPOCHS):
    began, total, count = time.perf_counter(), torch.zeros(()), 0
    for starts in train_starts[torch.randperm(len(train_starts))].split(BATCH):
        if len(starts) < BATCH:
            continue
        seen, forcing, target = take(starts)
        loss = F.smooth_l1_loss(model(seen, forcing), target)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        opt.step()
        schedule.step()
        total += loss.detach()
        count += 1
    took = 1000 * (time.perf_counter() - began) / count
    nse = skill()
    print(f"epoch {epoch:2d}  loss {float(total) / count:.4f}  "
          f"NSE 1 h {nse[0]:.3f}, {AHEAD} h {nse[-1]:.3f}  {took:.1f} ms/step")
