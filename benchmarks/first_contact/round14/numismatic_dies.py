"""Links ancient coins to the dies that struck them: a wide classifier on image descriptors."""
import os
from dataclasses import dataclass
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass(frozen=True)
class Mint:
    descriptor: int = 64 if TINY else 2048
    hidden: int = 96 if TINY else 8192
    depth: int = 1 if TINY else 5
    dies: int = 50 if TINY else 8192
    coins: int = 16 if TINY else 512
    steps: int = 6 if TINY else 500
    forget_gradients: bool = False  # flaw: zeroed-gradients
    where: str = "cuda" if torch.cuda.is_available() else "cpu"


class Workshop:
    def __init__(self, mint):
        self.mint = mint
        torch.manual_seed(10)
        layers = [nn.Linear(mint.descriptor, mint.hidden), nn.ReLU()]
        for _ in range(mint.depth):
            layers += [nn.Linear(mint.hidden, mint.hidden), nn.ReLU()]
        with torch.device(mint.where):
            self.net = nn.Sequential(*layers, nn.Linear(mint.hidden, mint.dies)).to(mint.where)
            self.bank = torch.randn(4 * mint.coins, mint.descriptor)
            self.struck_by = torch.randint(mint.dies, (4 * mint.coins,))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, fused=True)

    def strike(self, k):
        part = slice((k % 4) * self.mint.coins, (k % 4 + 1) * self.mint.coins)
        with torch.autocast(self.mint.where, torch.bfloat16):
            loss = nn.functional.cross_entropy(self.net(self.bank[part]), self.struck_by[part])
        self.opt.zero_grad(set_to_none=self.mint.forget_gradients)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def work(self):
        history = [self.strike(k) for k in range(self.mint.steps)]
        print("loss %.3f -> %.3f" % (history[0].item(), history[-1].item()))


if __name__ == "__main__":
    Workshop(Mint()).work()
