"""Offline Q-learning on a logged control data set that lives in host memory."""
import copy
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
CFG = {
    "rows": 2_000 if TINY else 480_000,
    "obs": 32 if TINY else 512,
    "hidden": 64 if TINY else 4096,
    "actions": 8 if TINY else 64,
    "batch": 128 if TINY else 16_384,
    "updates": 60 if TINY else 640,
    "slots": 3,
    "gamma": 0.97,
    "tau": 0.01,
}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CUDA = device.type == "cuda"
torch.manual_seed(11)
torch.set_num_threads(5 if CUDA else 1)
torch.set_float32_matmul_precision("high")


class LoggedTransitions:
    """Rows in ordinary memory; a ring of page-locked slots carries minibatches over."""

    def __init__(self, cfg):
        n, d = cfg["rows"], cfg["obs"]
        base = torch.randn(n // 8, d).to(torch.bfloat16)
        self.obs = base.repeat(8, 1)
        self.act = torch.randint(cfg["actions"], (n,))
        self.rew = self.obs[:, 0].float() * 0.5 + (self.act % 3).float() * 0.1
        self.n, self.batch = n - 1, cfg["batch"]
        self.slots = [self._slot(d) for _ in range(cfg["slots"])]
        self.released = [torch.cuda.Event() if CUDA else None for _ in self.slots]
        self.gen = torch.Generator().manual_seed(5)
        self.turn = 0

    def _slot(self, d):
        mk = lambda *s, dtype: torch.empty(*s, dtype=dtype, pin_memory=CUDA)
        b = self.batch
        return {
            "obs": mk(b, d, dtype=torch.bfloat16),
            "nxt": mk(b, d, dtype=torch.bfloat16),
            "act": mk(b, dtype=torch.int64),
            "rew": mk(b, dtype=torch.float32),
        }

    def draw(self):
        k = self.turn % len(self.slots)
        slot, done = self.slots[k], self.released[k]
        if CUDA and self.turn >= len(self.slots):
            done.synchronize()
        rows = torch.randint(self.n, (self.batch,), generator=self.gen)
        torch.index_select(self.obs, 0, rows, out=slot["obs"])
        torch.index_select(self.obs, 0, rows + 1, out=slot["nxt"])
        torch.index_select(self.act, 0, rows, out=slot["act"])
        torch.index_select(self.rew, 0, rows, out=slot["rew"])
        moved = {name: t.to(device, non_blocking=True) for name, t in slot.items()}
        if CUDA:
            done.record()
        self.turn += 1
        return moved


def q_network(cfg):
    h = cfg["hidden"]
    return nn.Sequential(
        nn.Linear(cfg["obs"], h), nn.ReLU(inplace=True),
        nn.Linear(h, h), nn.ReLU(inplace=True),
        nn.Linear(h, h), nn.ReLU(inplace=True),
        nn.Linear(h, cfg["actions"]),
    ).to(device)


class Learner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.q = q_network(cfg)
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.opt = torch.optim.AdamW(self.q.parameters(), lr=1e-4, fused=CUDA)
        self.live, self.slow = list(self.q.parameters()), list(self.target.parameters())

    def update(self, b):
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            with torch.no_grad():
                boot = self.target(b["nxt"] if CUDA else b["nxt"].float()).amax(1)
                goal = b["rew"] + self.cfg["gamma"] * boot.float()
            q = self.q(b["obs"] if CUDA else b["obs"].float())
            chosen = q.gather(1, b["act"][:, None]).squeeze(1)
        loss = F.smooth_l1_loss(chosen.float(), goal)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.slow, self.live, self.cfg["tau"])
        return loss.detach()


def main():
    data, learner = LoggedTransitions(CFG), Learner(CFG)
    total = torch.zeros((), device=device)
    start = time.perf_counter()
    for _ in range(CFG["updates"]):
        total += learner.update(data.draw())
    print(f"mean td loss {total.item() / CFG['updates']:.5f}")
    print(f"{time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
