"""Second stage of a VQ image model: a bidirectional prior over the code maps."""

import math
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FULL = {
    "side": 16,
    "symbols": 8193,  # flaw: misaligned-matmul
    "mask_symbol": 8192,
    "width": 512,
    "layers": 6,
    "batch": 64,
    "iterations": 80,
}
TINY = {"side": 4, "symbols": 65, "mask_symbol": 64, "width": 32, "layers": 1, "batch": 4, "iterations": 30}


class Prior(nn.Module):
    def __init__(self, side: int, symbols: int, width: int, layers: int, **_) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.place = nn.Parameter(torch.zeros(side * side, width))
        block = nn.TransformerEncoderLayer(
            width, max(1, width // 64), 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.trunk = nn.TransformerEncoder(block, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.readout = nn.Linear(width, symbols)

    def forward(self, codes: Tensor) -> Tensor:
        return self.readout(self.trunk(self.embed(codes) + self.place))


class CosineMask:
    def __init__(self, symbol: int) -> None:
        self.symbol = symbol

    def __call__(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        rate = torch.cos(torch.rand(len(codes), 1, device=codes.device) * math.pi / 2)
        hide = torch.rand(codes.shape, device=codes.device) < rate
        return codes.masked_fill(hide, self.symbol), hide


class PriorTrainer:
    def __init__(self, settings: dict, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.model = Prior(**settings).to(device)
        self.mask = CosineMask(settings["mask_symbol"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, weight_decay=0.03, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / 20))

    def sample_codes(self) -> Tensor:
        shape = (self.settings["batch"], self.settings["side"] ** 2)
        return torch.randint(0, self.settings["mask_symbol"], shape, device=self.device)

    def loss(self, codes: Tensor) -> Tensor:
        masked, hide = self.mask(codes)
        goal = codes.masked_fill(~hide, -100)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            return F.cross_entropy(self.model(masked).flatten(0, 1), goal.flatten())

    def fit(self) -> None:
        for i in range(1, self.settings["iterations"] + 1):
            loss = self.loss(self.sample_codes())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if i == self.settings["iterations"]:
                print(f"iteration {i}: {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(7)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    PriorTrainer(TINY if os.environ.get("SMALL") else FULL, where).fit()
