"""Volatility forecasts with a cuDNN LSTM."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
BATCH, DAYS, ASSETS, HIDDEN, STEPS = (4, 16, 8, 16, 6) if TINY else (2048, 128, 64, 512, 500)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(ASSETS, HIDDEN, num_layers=2, batch_first=True)
        self.read = nn.Linear(HIDDEN, ASSETS)

    def forward(self, returns):
        states, _ = self.rnn(returns)
        return self.read(states)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Forecaster().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    market = torch.randn(8, BATCH, DAYS + 1, ASSETS, device=device) * 0.01
    for step in range(STEPS):
        window = market[step % 8]
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(window[:, :-1])
        loss = nn.functional.mse_loss(guess.float(), window[:, 1:].abs())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.6f}")


main()
