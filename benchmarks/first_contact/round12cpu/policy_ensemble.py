"""Ensemble of Q-networks for a cart on a track; slow copies of the members give the targets."""
import copy

import torch
from torch import nn

MEMBERS, OBS, ACTIONS = 8, 6, 3


def q_net(width=32):
    layers, size = [], OBS
    for _ in range(3):
        layers += [nn.Linear(size, width), nn.LayerNorm(width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, ACTIONS))


class Ensemble(nn.ModuleList):
    def forward(self, obs):
        return torch.stack([m(obs) for m in self])


class Cart:
    def __init__(self, n, gen):
        self.gen = gen
        self.state = torch.randn(n, OBS, generator=gen)

    def transition(self, action):
        before = self.state
        self.state = 0.9 * before
        self.state[:, 0] += 0.2 * (action - 1).float()
        self.state += 0.05 * torch.randn(before.shape, generator=self.gen)
        return before, -self.state[:, 0].abs(), self.state


class AdamRule:
    """Adam as in the paper, with the bias correction folded into the rate."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-8, decay=1e-4):
        self.params, self.lr, self.betas, self.eps, self.t = list(params), lr, betas, eps, 0
        self.decay = decay
        self.mean = [torch.zeros_like(p) for p in self.params]
        self.var = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.mean, self.var):  # flaw: parameter-loop
            p.grad.add_(p, alpha=self.decay)  # flaw: parameter-loop
            m.mul_(b1).add_(p.grad, alpha=1 - b1)  # flaw: parameter-loop
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)  # flaw: parameter-loop
            m_hat = m / (1 - b1 ** self.t)  # flaw: parameter-loop
            v_hat = v / (1 - b2 ** self.t)  # flaw: parameter-loop
            p.sub_(self.lr * m_hat / (v_hat.sqrt() + self.eps))  # flaw: parameter-loop
            p.grad = None  # flaw: parameter-loop


torch.manual_seed(13)
gen = torch.Generator().manual_seed(13)
online = Ensemble(q_net() for _ in range(MEMBERS))
slow = copy.deepcopy(online).requires_grad_(False)
online_weights, slow_weights = list(online.parameters()), list(slow.parameters())
rule = AdamRule(online.parameters(), lr=1e-3)  # flaw: parameter-loop
cart = Cart(64, gen)
for it in range(1, 901):
    action = torch.randint(0, ACTIONS, (64,), generator=gen)
    obs, reward, nxt = cart.transition(action)
    with torch.no_grad():
        target = reward + 0.9 * slow(nxt).mean(0).amax(1)
    value = online(obs).gather(2, action.expand(MEMBERS, -1).unsqueeze(2)).squeeze(2)
    loss = (value - target).square().mean()
    loss.backward()
    rule.step()  # flaw: parameter-loop
    with torch.no_grad():
        torch._foreach_lerp_(slow_weights, online_weights, 0.005)
    if it % 450 == 0:
        print(f"update {it}: td error {loss.item():.5f}")
