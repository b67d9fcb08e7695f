"""Finds the nearest known spore signatures for a stream of new ones."""
import os
import torch
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"


class Atlas:
    def __init__(self, entries, size, seed=22):
        g = torch.Generator(DEV).manual_seed(seed)
        self.rows = F.normalize(torch.randn(entries, size, device=DEV, generator=g), dim=1).to(torch.bfloat16)

    def nearest(self, spores, k):
        return (spores @ self.rows.t()).topk(k, dim=1)


def stream(count, batch, size):
    g = torch.Generator(DEV).manual_seed(23)
    for _ in range(count):
        yield F.normalize(torch.randn(batch, size, device=DEV, generator=g), dim=1).to(torch.bfloat16)


@torch.inference_mode()
def main():
    entries, size, batch, count, k = (512, 32, 8, 5, 4) if TINY else (524288, 768, 2048, 300, 8)
    atlas = Atlas(entries, size)
    found = torch.empty(count, batch, k, dtype=torch.long, device=DEV)
    closeness = torch.zeros((), device=DEV)
    for i, spores in enumerate(stream(count, batch, size)):
        near = atlas.nearest(spores, k)
        found[i] = near.indices
        closeness += near.values[:, 0].float().mean()
    print(tuple(found.cpu().shape), f"mean closeness {closeness.item() / count:.3f}")


if __name__ == "__main__":
    main()
