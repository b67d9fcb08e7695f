# corpus: run, may launch-bound small-batch gc-pause-in-step unfused-elementwise hand-written-loss per-tensor-optimizer
import torch
from torch import nn

torch.manual_seed(0)


def network(inputs, outputs, width=384):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs),
    )


policy, value = network(24, 6, width=64), network(24 + 6, 1)
policy_optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
value_optimizer = torch.optim.SGD(value.parameters(), lr=1e-3)
states, actions, returns = torch.randn(256, 24), torch.randn(256, 6), torch.randn(256, 1)
for step in range(1500):
    error = (value(torch.cat([states, actions], 1)) - returns).square().mean()
    value_optimizer.zero_grad()
    error.backward()
    value_optimizer.step()

    chosen = torch.tanh(policy(states))
    gain = value(torch.cat([states, chosen], 1)).mean()  #> found
    policy_optimizer.zero_grad()
    (-gain).backward()
    policy_optimizer.step()
print(f"{error.item():.6f} {gain.item():.6f}")
