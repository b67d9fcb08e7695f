# Builds a visual codebook (bag of words) from local image descriptors by mini-batch k-means.
import os
import torch

TINY = os.environ.get("TINY") == "1"

SETTINGS = {
    "descriptors": {"count": 4096 if TINY else 1_048_576, "size": 32 if TINY else 512, "themes": 40 if TINY else 3000},
    "codebook": {"words": 64 if TINY else 8192, "chunk": 512 if TINY else 131072},
    "run": {"rounds": 60 if TINY else 2000, "report": 15 if TINY else 100, "seed": 29},
    "backend": {
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "matmul": "highest",  # flaw: fp32-matmul
    },
}


class DescriptorBank:
    """Descriptors drawn around themes, normalised to unit length."""

    def __init__(self, count, size, themes, device, seed):
        g = torch.Generator(device).manual_seed(seed)
        centers = torch.randn(themes, size, device=device, generator=g)
        which = torch.randint(themes, (count,), device=device, generator=g)
        rows = centers[which] + 0.7 * torch.randn(count, size, device=device, generator=g)
        self.rows = torch.nn.functional.normalize(rows, dim=1)
        self.cursor = 0

    def __len__(self):
        return len(self.rows)

    def next(self, amount):
        if self.cursor + amount > len(self.rows):
            self.cursor = 0
        out = self.rows[self.cursor : self.cursor + amount]
        self.cursor += amount
        return out


class OnlineKMeans:
    """Sculley's web-scale k-means: every word moves towards the mean of all it has seen."""

    def __init__(self, words, first):
        self.words = first[:words].clone()
        self.seen = torch.ones(words, device=first.device)
        self.unit = None

    def assign(self, rows):
        # |r - w|^2 = |r|^2 - 2 r.w + |w|^2, and |r| is 1
        length = torch.linalg.vector_norm(self.words, dim=1).square()
        return torch.addmm(length, rows, (self.words * -2).t()).min(dim=1)

    def absorb(self, rows, owner):
        if self.unit is None or len(self.unit) != len(rows):
            self.unit = torch.ones(len(rows), device=rows.device)
        sums = torch.zeros_like(self.words).index_add_(0, owner, rows)
        counts = torch.zeros_like(self.seen).index_add_(0, owner, self.unit)
        self.seen += counts
        self.words += (sums - counts.unsqueeze(1) * self.words) / self.seen.unsqueeze(1)

    def round(self, rows):
        nearest, owner = self.assign(rows)
        self.absorb(rows, owner)
        return nearest.mean() + 1.0


def build(settings):
    backend, run, book = settings["backend"], settings["run"], settings["codebook"]
    torch.set_float32_matmul_precision(backend["matmul"])  # flaw: fp32-matmul
    bank = DescriptorBank(device=backend["device"], seed=run["seed"], **settings["descriptors"])
    solver = OnlineKMeans(book["words"], bank.next(book["chunk"]))
    distortion = torch.zeros((), device=backend["device"])
    for number in range(1, run["rounds"] + 1):
        distortion += solver.round(bank.next(book["chunk"]))
        if number % run["report"] == 0:
            print(f"round {number}: distortion {distortion.item() / run['report']:.5f}", flush=True)
            distortion.zero_()
    return solver


if __name__ == "__main__":
    with torch.inference_mode():
        codebook = build(SETTINGS)
    print("words in use:", int((codebook.seen > 1).sum()))
