"""Picks P-wave arrivals in three-component seismograms with a recurrent net."""
import torch
from torch import nn


class Picker(nn.Module):
    """Returns one logit per sample: has the wave arrived yet?"""

    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(6, hidden)  # flaw: python-loop-over-tensor
        self.out = nn.Linear(hidden, 1)

    def forward(self, trace):
        x = torch.cat([trace, trace.abs()], -1)
        h = x.new_zeros(x.shape[0], self.hidden)  # flaw: python-loop-over-tensor
        c = x.new_zeros(x.shape[0], self.hidden)  # flaw: python-loop-over-tensor
        states = []  # flaw: python-loop-over-tensor
        for t in range(x.shape[1]):  # flaw: python-loop-over-tensor
            h, c = self.cell(x[:, t], (h, c))  # flaw: python-loop-over-tensor
            states.append(h)  # flaw: python-loop-over-tensor
        return self.out(torch.stack(states, dim=1)).squeeze(-1)  # flaw: python-loop-over-tensor


def seismograms(n, gen, length=120):
    arrival = torch.randint(20, length - 20, (n, 1), generator=gen)
    after = (torch.arange(length) >= arrival).float()
    decay = torch.exp(-(torch.arange(length) - arrival).clamp(min=0) / 30) * after
    trace = torch.randn(n, length, 3, generator=gen) * (0.2 + decay.unsqueeze(-1))
    return trace, after


def fit(max_iter):
    torch.set_num_threads(1)
    torch.manual_seed(40)
    gen = torch.Generator().manual_seed(40)
    net = Picker()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    it = 0
    while it < max_iter:
        trace, after = seismograms(16, gen)
        opt.zero_grad()
        loss = criterion(net(trace), after)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        it += 1
        if it % 75 == 0:
            print(f"{it}: loss {loss.item():.4f}")
    return net


fit(max_iter=150)
