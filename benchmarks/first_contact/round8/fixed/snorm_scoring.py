"""Speaker verification back-end: cosine scoring with adaptive s-norm and EER over all trials."""
import argparse
import time

import numpy as np
import torch


def load_embeddings(n_speakers, per_speaker, dim, seed):
    """Stands in for reading an ark of x-vectors: (embeddings, speaker ids)."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_speakers, dim))
    ids = np.repeat(np.arange(n_speakers), per_speaker)
    noise = rng.standard_normal((len(ids), dim))
    return centres[ids] + 1.5 * noise, ids


def to_device(emb, mean, device):
    x = torch.from_numpy((emb - mean).astype(np.float32)).to(device)
    return torch.nn.functional.normalize(x, dim=1)


def cohort_stats(x, cohort, top_n, chunk):
    """Mean and std of the top_n cohort scores of each row of x."""
    means, stds = [], []
    for part in x.split(chunk):
        top = torch.topk(part @ cohort.t(), top_n, dim=1, sorted=False).values
        std, mean = torch.std_mean(top, dim=1)
        means.append(mean)
        stds.append(std)
    return torch.cat(means), torch.cat(stds)


class EER:
    """Histogram-based equal error rate, kept on the device."""

    def __init__(self, device, bins=4000, lo=-12.0, hi=12.0):
        self.bins, self.lo, self.hi = bins, lo, hi
        self.target = torch.zeros(bins, device=device)
        self.other = torch.zeros(bins, device=device)

    def add(self, scores, same):
        total = torch.histc(scores, self.bins, self.lo, self.hi)
        tar = torch.histc(scores.masked_fill(~same, self.hi + 1), self.bins, self.lo, self.hi)
        self.target += tar
        self.other += total - tar

    def compute(self):
        miss = self.target.cumsum(0) / self.target.sum()
        fa = 1 - self.other.cumsum(0) / self.other.sum()
        i = (miss - fa).abs().argmin()
        return (0.5 * (miss[i] + fa[i])).item()


@torch.inference_mode()
def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=512 if cuda else 16)
    ap.add_argument("--speakers", type=int, default=1500 if cuda else 40)
    ap.add_argument("--cohort", type=int, default=5000 if cuda else 50)
    ap.add_argument("--top-n", type=int, default=400 if cuda else 10)
    ap.add_argument("--chunk", type=int, default=1024 if cuda else 32)
    ap.add_argument("--passes", type=int, default=40 if cuda else 1)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True

    enroll, enroll_ids = load_embeddings(args.speakers, 8, args.dim, 0)
    test, test_ids = load_embeddings(args.speakers, 8, args.dim, 0)
    test = test + np.random.default_rng(2).standard_normal(test.shape)
    cohort, _ = load_embeddings(args.cohort, 2, args.dim, 3)
    mean = cohort.mean(0)
    e, t, c = (to_device(a, mean, device) for a in (enroll, test, cohort))
    e_ids, t_ids = (torch.as_tensor(a, device=device) for a in (enroll_ids, test_ids))

    # several back-end settings: shrink the embeddings along fewer and fewer of the leading dimensions
    for p in range(args.passes):
        began = time.time()
        keep = args.dim - 8 * (args.dim // 64) * (p % 4)
        cp = torch.nn.functional.normalize(c[:, :keep], dim=1)
        tp = torch.nn.functional.normalize(t[:, :keep], dim=1)
        t_mean, t_std = cohort_stats(tp, cp, args.top_n, args.chunk)
        metric = EER(device)
        for rows, ids in zip(e.split(args.chunk), e_ids.split(args.chunk)):
            ep = torch.nn.functional.normalize(rows[:, :keep], dim=1)
            e_mean, e_std = cohort_stats(ep, cp, args.top_n, args.chunk)
            raw = ep @ tp.t()
            z = torch.addcdiv(-e_mean.div(e_std)[:, None], raw, e_std[:, None])
            s = torch.addcdiv(-t_mean.div(t_std)[None], raw, t_std[None])
            metric.add(s.add_(z).mul_(0.5), ids[:, None] == t_ids[None])
        print(f"keep {keep}: EER {100 * metric.compute():.3f}%  ({time.time() - began:.2f}s)")


if __name__ == "__main__":
    main()
