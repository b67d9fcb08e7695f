"""First stage of a feed: score every item for a group of users, keep the best, rank those with a network."""
from typing import Iterator, NamedTuple

import torch
from torch import Tensor, nn

torch.set_float32_matmul_precision("high")


class Sizes(NamedTuple):
    items: int
    dim: int
    users: int
    keep: int
    hidden: int
    groups: int


FULL = Sizes(items=400_000, dim=128, users=64, keep=512, hidden=2048, groups=150)
TINY = Sizes(items=500, dim=16, users=4, keep=16, hidden=32, groups=3)


class Ranker(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * dim, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, 8),
        )

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        pairs = torch.cat([users.unsqueeze(1).expand_as(items), items], dim=2)
        return self.net(pairs)[..., 0]


class Feed:
    def __init__(self, sizes: Sizes, device: torch.device):
        self.sizes = sizes
        gen = torch.Generator(device).manual_seed(40)
        self.items = torch.randn(sizes.items, sizes.dim, generator=gen, device=device)
        self.ranked_items = self.items.to(torch.bfloat16)
        self.ranker = Ranker(sizes.dim, sizes.hidden).to(device, torch.bfloat16).eval()

    def candidates(self, users: Tensor) -> Tensor:
        scores = users @ self.items.T
        return scores.topk(self.sizes.keep, dim=1).indices

    def rank(self, users: Tensor, candidates: Tensor) -> Tensor:
        rated = self.ranker(users.to(torch.bfloat16), self.ranked_items[candidates])
        best = rated.float().topk(8, dim=1).indices
        return candidates.gather(1, best)

    @torch.inference_mode()
    def page(self, users: Tensor) -> tuple[Tensor, Tensor]:
        candidates = self.candidates(users)
        return candidates, self.rank(users, candidates)


def user_groups(sizes: Sizes, device: torch.device) -> Iterator[Tensor]:
    gen = torch.Generator(device).manual_seed(41)
    for _ in range(sizes.groups):
        yield torch.randn(sizes.users, sizes.dim, generator=gen, device=device)


def main() -> None:
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    sizes = FULL if on_gpu else TINY
    torch.manual_seed(42)
    feed = Feed(sizes, device)
    checks = []
    for users in user_groups(sizes, device):
        candidates, shown = feed.page(users)
        checks.append(torch.stack([candidates.float().mean(), shown.float().mean()]))
    first, second = torch.stack(checks).mean(0).tolist()
    print(f"{sizes.groups} groups; mean candidate id {first:.2f}, mean shown id {second:.2f}")


if __name__ == "__main__":
    main()
