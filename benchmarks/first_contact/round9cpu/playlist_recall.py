"""Recall and NDCG of a matrix factorisation recommender over all held-out users."""

import torch

USERS, TRACKS, RANK = 12_800, 12_000, 32
CUTOFF = 20


def load_factors(generator):
    users = torch.randn(USERS, RANK, generator=generator)
    tracks = torch.randn(TRACKS, RANK, generator=generator)
    return users, tracks


def load_history(generator, per_user=30):
    return torch.randint(TRACKS, (USERS, per_user), generator=generator)


def held_out(users, tracks, generator, per_user=10):
    truth = torch.randint(TRACKS, (USERS, per_user), generator=generator)
    liked = (users[:, None] * tracks[truth]).sum(2) > 0
    return truth, liked


class Recall:
    name = "recall"

    def __call__(self, hit, relevant):
        return hit.sum(1) / relevant.clamp(1, CUTOFF)


class NDCG:
    name = "ndcg"

    def __init__(self):
        self.gain = 1 / torch.log2(torch.arange(CUTOFF) + 2.0)
        self.ideal = self.gain.cumsum(0)

    def __call__(self, hit, relevant):
        return (hit * self.gain).sum(1) / self.ideal[relevant.clamp(1, CUTOFF) - 1]


def rank(scores):
    order = torch.argsort(scores, dim=1, descending=True)  # flaw: full-sort
    return order[:, :CUTOFF]  # flaw: full-sort


@torch.inference_mode()
def evaluate(batch_size=128):
    generator = torch.Generator().manual_seed(0)
    users, tracks = load_factors(generator)
    history = load_history(generator)
    truth, liked = held_out(users, tracks, generator)
    metrics = [Recall(), NDCG()]
    sums = torch.zeros(len(metrics))
    for rows in torch.arange(USERS).split(batch_size):
        scores = users[rows] @ tracks.T
        scores.scatter_(1, history[rows], float("-inf"))
        top = rank(scores)
        wanted = truth[rows].masked_fill(~liked[rows], -1)
        hit = (top[:, :, None] == wanted[:, None, :]).any(2).float()
        relevant = liked[rows].sum(1)
        for i, metric in enumerate(metrics):
            sums[i] += metric(hit, relevant).sum()
    for metric, value in zip(metrics, (sums / USERS).tolist()):
        print(f"{metric.name}@{CUTOFF}: {value:.5f}")


if __name__ == "__main__":
    evaluate()
