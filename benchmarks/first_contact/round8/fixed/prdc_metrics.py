"""Precision, recall, density and coverage of generated samples (Naeem et al. 2020), row block by row block."""
import torch

USE_CUDA = torch.cuda.is_available()
torch.backends.cuda.matmul.allow_tf32 = True


def squared_distances(a, b, b_sq):
    """|a - b|^2 without the |a|^2 term, which is constant in each row."""
    return torch.addmm(b_sq, a, b.t(), alpha=-2)


def knn_radii(feats, k, block):
    """Squared distance of every row to its k-th neighbour (itself excluded)."""
    sq = feats.square().sum(1)
    radii = []
    for rows, rows_sq in zip(feats.split(block), sq.split(block)):
        d = squared_distances(rows, feats, sq)
        kth = d.topk(k + 1, dim=1, largest=False).values[:, k]
        radii.append(kth + rows_sq)
    return torch.cat(radii)


class PRDC:
    def __init__(self, real, k=5, block=2048):
        self.real, self.k, self.block = real, k, block
        self.real_sq = real.square().sum(1)
        self.real_radii = knn_radii(real, k, block)

    def __call__(self, fake):
        fake_radii = knn_radii(fake, self.k, self.block)
        fake_sq = fake.square().sum(1)
        inside = torch.zeros((), device=fake.device)
        pairs = torch.zeros((), device=fake.device)
        recalled = torch.zeros((), device=fake.device)
        covered = torch.zeros((), device=fake.device)
        for rows, rows_sq in zip(fake.split(self.block), fake_sq.split(self.block)):
            d = squared_distances(rows, self.real, self.real_sq)
            hit = d < self.real_radii - rows_sq[:, None]
            inside += hit.any(1).sum()
            pairs += hit.sum()
        for rows, rows_sq, radii in zip(
            self.real.split(self.block), self.real_sq.split(self.block), self.real_radii.split(self.block)
        ):
            d = squared_distances(rows, fake, fake_sq)
            recalled += (d < fake_radii - rows_sq[:, None]).any(1).sum()
            covered += (d.amin(1) < radii - rows_sq).sum()
        n, m = len(fake), len(self.real)
        return {
            "precision": inside / n,
            "recall": recalled / m,
            "density": pairs / (self.k * n),
            "coverage": covered / m,
        }


@torch.inference_mode()
def main():
    device = torch.device("cuda" if USE_CUDA else "cpu")
    n, dim = (40960, 512) if USE_CUDA else (300, 16)
    block = 2048 if USE_CUDA else 64
    checkpoints = 6 if USE_CUDA else 2
    torch.manual_seed(0)
    mix = torch.randn(dim, dim, device=device) / dim**0.5
    real = torch.randn(n, dim, device=device) @ mix
    metric = PRDC(real, k=5, block=block)
    for c in range(checkpoints):
        drift = 0.5 * (1 - c / checkpoints)
        fake = torch.randn(n, dim, device=device) @ mix * (1 - 0.3 * drift) + 0.02 * drift
        scores = metric(fake)
        print(f"checkpoint {c}: " + "  ".join(f"{name} {v.item():.4f}" for name, v in scores.items()))


if __name__ == "__main__":
    main()
