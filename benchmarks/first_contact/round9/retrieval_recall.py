"""Recall@k of product image retrieval: embed queries, compare with the whole gallery, look at the best matches."""

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = not torch.cuda.is_available()
DEVICE = torch.device("cpu" if SMALL else "cuda")
GALLERY, QUERIES, BATCH, DIM = (300, 64, 16, 32) if SMALL else (120_000, 307_200, 1024, 512)
PRODUCTS = 40 if SMALL else 11_000
RANKS = (1, 5, 10)


class Projector(nn.Module):
    """Head on top of stored backbone features (2048 wide)."""

    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, dim))

    def forward(self, features):
        return F.normalize(self.net(features).float(), dim=-1)


@torch.inference_mode()
def embed(model, features):
    parts = []
    for chunk in features.split(BATCH):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            parts.append(model(chunk).to(torch.bfloat16))
    return torch.cat(parts)


@torch.inference_mode()
def recall(model, features, labels, gallery, gallery_labels):
    hits = torch.zeros(len(RANKS), device=DEVICE)
    for start in range(0, len(features), BATCH):
        query = embed(model, features[start : start + BATCH])
        similarity = query @ gallery.t()
        order = similarity.argsort(dim=1, descending=True)  # flaw: full-sort
        found = gallery_labels[order[:, : max(RANKS)]] == labels[start : start + BATCH, None]  # flaw: full-sort
        for i, k in enumerate(RANKS):
            hits[i] += found[:, :k].any(1).sum()
    return hits / len(features)


def features_of(centres, labels, spread):
    return (centres[labels] + spread * torch.randn(len(labels), 2048, device=DEVICE)).to(torch.bfloat16)


def main():
    torch.manual_seed(0)
    centres = torch.randn(PRODUCTS, 2048, device=DEVICE)
    gallery_labels = torch.randint(0, PRODUCTS, (GALLERY,), device=DEVICE)
    labels = torch.randint(0, PRODUCTS, (QUERIES,), device=DEVICE)
    model = Projector(DIM).to(DEVICE).eval()
    gallery = embed(model, features_of(centres, gallery_labels, 1.5))
    scores = recall(model, features_of(centres, labels, 1.5), labels, gallery, gallery_labels)
    for k, score in zip(RANKS, scores.tolist()):
        print(f"recall@{k}: {100 * score:.2f}")


if __name__ == "__main__":
    main()
