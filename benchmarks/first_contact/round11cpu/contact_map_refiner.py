"""Refines protein contact maps with a dilated residual network over residue pairs."""

import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class RefinerShape:
    width: int = 32
    dilations: tuple[int, ...] = (1, 2, 4, 1, 2, 4)
    residues: int = 40
    features: int = 8


class PairBlock(nn.Module):
    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.spread = nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv2d(width, width, 1)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        update = self.mix(F.relu(self.spread(self.norm(pairs))))
        return pairs + update


class ContactRefiner(nn.Module):
    def __init__(self, shape: RefinerShape):
        super().__init__()
        self.enter = nn.Conv2d(2 * shape.features + 1, shape.width, 1)
        self.blocks = nn.ModuleList([PairBlock(shape.width, d) for d in shape.dilations])
        self.leave = nn.Conv2d(shape.width, 1, 1)

    def forward(self, chain: torch.Tensor, rough: torch.Tensor) -> torch.Tensor:
        n = chain.shape[1]
        left = chain.transpose(1, 2).unsqueeze(3).expand(-1, -1, -1, n)
        right = chain.transpose(1, 2).unsqueeze(2).expand(-1, -1, n, -1)
        pairs = self.enter(torch.cat([left, right, rough.unsqueeze(1)], dim=1))
        for block in self.blocks:
            pairs = checkpoint(block, pairs, use_reentrant=False)  # flaw: needless-checkpointing
        logits = self.leave(pairs).squeeze(1)
        return 0.5 * (logits + logits.transpose(1, 2))


def fold(n: int, shape: RefinerShape, gen: torch.Generator):
    """Random walks stand for folded chains; two residues touch when they are close."""
    steps = torch.randn(n, shape.residues, 3, generator=gen)
    walk = steps.div(steps.norm(dim=2, keepdim=True)).cumsum(1)
    distance = torch.cdist(walk, walk)
    contacts = (distance < 2.5).float()
    rough = torch.sigmoid(3 * (2.5 - distance) + 2 * torch.randn(distance.shape, generator=gen))
    local = torch.randn(n, shape.residues, shape.features - 3, generator=gen)
    return torch.cat([steps * 0.5, local], dim=2), rough, contacts


def precision_at_l(logits: torch.Tensor, contacts: torch.Tensor, residues: int) -> float:
    top = logits.detach().flatten(1).topk(residues, dim=1).indices
    return contacts.flatten(1).gather(1, top).mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=320)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--proteins", type=int, default=400)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(28)
    shape = RefinerShape()
    gen = torch.Generator().manual_seed(29)
    chain, rough, contacts = fold(args.proteins, shape, gen)
    model = ContactRefiner(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    for update in range(1, args.updates + 1):
        rows = torch.randint(args.proteins, (args.batch,), generator=gen)
        logits = model(chain[rows], rough[rows])
        loss = F.binary_cross_entropy_with_logits(logits, contacts[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 64 == 0:
            hit = precision_at_l(logits, contacts[rows], shape.residues)
            print(f"update {update}: loss {loss.item():.4f}, precision {hit:.3f}")


if __name__ == "__main__":
    main()
