"""Lloyd iterations that build the coarse codebook of a vector index."""

import torch

ON_GPU = torch.cuda.is_available()
device = torch.device("cuda" if ON_GPU else "cpu")
POINTS, DIM, CENTROIDS = (524_288, 768, 4096) if ON_GPU else (512, 8, 16)
CHUNK = 65_536 if ON_GPU else 128
ITERATIONS = 60 if ON_GPU else 5


def assign(points, centroids):
    bias = centroids.square().sum(1)
    labels = []
    for chunk in points.split(CHUNK):
        distance = torch.addmm(bias, chunk, centroids.T, alpha=-2.0)
        labels.append(distance.argmin(1))
    return torch.cat(labels)


def update(points, labels, centroids):
    sums = torch.zeros_like(centroids).index_add_(0, labels, points)
    counts = torch.bincount(labels, minlength=len(centroids)).unsqueeze(1)
    return torch.where(counts > 0, sums / counts.clamp(min=1), centroids)


@torch.inference_mode()
def kmeans(points, k, iterations):
    centroids = points[torch.randperm(len(points), device=device)[:k]].clone()
    for _ in range(iterations):
        labels = assign(points, centroids)
        centroids = update(points, labels, centroids)
    return centroids, labels


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
vectors = torch.randn(POINTS, DIM, device=device)
vectors += 2 * torch.randn(64, DIM, device=device)[torch.randint(64, (POINTS,), device=device)]
codebook, codes = kmeans(vectors, CENTROIDS, ITERATIONS)
error = torch.stack([(v - codebook[c]).square().sum(1).mean() for v, c in zip(vectors.split(CHUNK), codes.split(CHUNK))])
print(f"quantisation error {error.mean().item():.3f}")
