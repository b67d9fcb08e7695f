"""Score collider jets with a trained deep-sets tagger. Jets have very different numbers of particles."""
import numpy as np
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cuda":
    N_JETS, BATCH, WIDTH, DEPTH, DTYPE = 262_144, 2048, 1024, 4, torch.bfloat16
else:
    N_JETS, BATCH, WIDTH, DEPTH, DTYPE = 256, 32, 32, 2, torch.float32
N_FEATURES = 16


class Tagger(nn.Module):
    """phi on each particle, sum over the particles of a jet, rho on the sum."""

    def __init__(self, features, width, depth, classes=5):
        super().__init__()
        dims = [features] + [width] * depth
        self.phi = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.rho = nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, classes))

    def forward(self, particles, weight):
        h = particles
        for layer in self.phi:
            h = layer(h).relu_()
        pooled = torch.bmm(weight[:, None, :], h)[:, 0]
        return self.rho(pooled * 0.02)


class JetStore:
    """All particles of all jets back to back; jet j owns rows start[j] .. start[j] + size[j]."""

    def __init__(self, n_jets, device, seed=0):
        rng = np.random.default_rng(seed)
        size = rng.lognormal(3.9, 0.65, n_jets).astype(np.int64)
        self.size = np.clip(size, 6, 400)
        start = np.concatenate([[0], np.cumsum(self.size)[:-1]])
        self.start = torch.from_numpy(start).to(device)
        self.size_dev = torch.from_numpy(self.size).to(device)
        gen = torch.Generator(device).manual_seed(seed)
        self.rows = torch.randn(int(self.size.sum()), N_FEATURES, device=device, generator=gen).to(DTYPE)

    def __len__(self):
        return len(self.size)

    def gather(self, jets, jets_dev):
        """Dense (jets, longest, features) block and a 0/1 weight for the real particles."""
        longest = int(self.size[jets].max())
        col = torch.arange(longest, device=self.rows.device)
        real = col[None, :] < self.size_dev[jets_dev][:, None]
        row = self.start[jets_dev][:, None] + col[None, :]
        row = row.clamp_(max=len(self.rows) - 1)
        return self.rows[row], real.to(self.rows.dtype)


def visiting_order(store):
    """The order in which jets are scored; the scores are written back to each jet's own place."""
    return np.argsort(store.size, kind="stable")


@torch.inference_mode()
def score(model, store, batch):
    device = store.rows.device
    order = visiting_order(store)
    order_dev = torch.from_numpy(order).to(device)
    result = torch.empty(len(store), 5, device=device)
    for lo in range(0, len(store), batch):
        jets, jets_dev = order[lo:lo + batch], order_dev[lo:lo + batch]
        particles, weight = store.gather(jets, jets_dev)
        result[jets_dev] = model(particles, weight).float().softmax(-1)
    return result


def report(scores):
    counts = torch.bincount(scores.argmax(-1), minlength=5).tolist()
    print("jets per class:", counts)
    print("mean confidence:", f"{scores.amax(-1).mean().item():.4f}")
    print("first jet:", [round(v, 3) for v in scores[0].tolist()])


def main():
    torch.manual_seed(0)
    model = Tagger(N_FEATURES, WIDTH, DEPTH).to(DEVICE, DTYPE).eval()
    store = JetStore(N_JETS, DEVICE)
    print(f"{len(store)} jets, {len(store.rows)} particles")
    report(score(model, store, BATCH))


if __name__ == "__main__":
    main()
