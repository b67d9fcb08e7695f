"""Supervised contrastive training of speaker embeddings on precomputed utterance statistics."""
import math

import torch
import torch.nn.functional as F
from torch import nn

USE_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if USE_GPU else "cpu")
SPEAKERS = 8192 if USE_GPU else 16        # speakers in a batch, two utterances each
POOL = 40960 if USE_GPU else 64
STATS = 1024 if USE_GPU else 32
EMBED = 256 if USE_GPU else 16
STEPS = 200 if USE_GPU else 5


class SpeakerNet(nn.Module):
    def __init__(self, stats, embed):
        super().__init__()
        hidden = 2 * stats
        self.net = nn.Sequential(
            nn.Linear(stats, hidden), nn.GELU(),
            nn.LayerNorm(hidden),
            nn.Linear(hidden, hidden), nn.GELU(),
            nn.LayerNorm(hidden),
            nn.Linear(hidden, embed),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class PairwiseContrastiveLoss(nn.Module):
    """The positive of utterance i is the other utterance of the same speaker; all others are negatives."""

    def __init__(self, speakers, temperature=0.07):
        super().__init__()
        n = 2 * speakers
        self.temperature = temperature
        partner = (torch.arange(n) + speakers) % n
        self.register_buffer("partner", partner)
        self.register_buffer("self_mask", torch.eye(n, dtype=torch.bool))

    def forward(self, z):
        sim = (z @ z.T).float() / self.temperature
        sim_max = sim.max(dim=1, keepdim=True).values.detach()  # flaw: hand-written-loss
        logits = sim - sim_max  # flaw: hand-written-loss
        exp_logits = torch.exp(logits).masked_fill(self.self_mask, 0.0)  # flaw: hand-written-loss
        log_prob = logits - torch.log(exp_logits.sum(dim=1, keepdim=True))  # flaw: hand-written-loss
        return -log_prob.gather(1, self.partner[:, None]).mean()  # flaw: hand-written-loss


class UtterancePool:
    """Mean and deviation statistics, device resident; utterances scatter around their speaker."""

    def __init__(self, count, stats):
        self.centres = torch.randn(count, stats, device=DEVICE)

    def pairs(self, speakers):
        who = torch.randperm(len(self.centres), device=DEVICE)[:speakers]
        centre = self.centres[who]
        return torch.cat([centre, centre]).add_(torch.randn(2 * speakers, centre.shape[1], device=DEVICE))


def equal_error_rate(same, different):
    scores = torch.cat([same, different])
    target = torch.cat([torch.ones_like(same), torch.zeros_like(different)])
    target = target[scores.argsort(descending=True)]
    miss = 1 - target.cumsum(0) / len(same)
    false_alarm = (1 - target).cumsum(0) / len(different)
    at = (miss - false_alarm).abs().argmin()
    return 0.5 * (miss[at] + false_alarm[at])


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    pool = UtterancePool(POOL, STATS)
    net = SpeakerNet(STATS, EMBED).to(DEVICE)
    criterion = PairwiseContrastiveLoss(SPEAKERS).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05, fused=USE_GPU)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=STEPS)

    for step in range(1, STEPS + 1):
        batch = pool.pairs(SPEAKERS)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = criterion(net(batch))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if step % 50 == 0 or step == STEPS:
            print(f"step {step:4d} loss {loss.item():.4f}")

    with torch.inference_mode(), torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        a, b = net(pool.pairs(SPEAKERS)).float().chunk(2)
        eer = equal_error_rate((a * b).sum(1), (a * b.roll(1, 0)).sum(1))
        print(f"equal error rate {100 * eer.item():.2f} %")


if __name__ == "__main__":
    main()
