"""Forecasts the traffic of the next hour from the last eight with a GRU."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
SENSORS, PAST, FUTURE, HIDDEN, BATCH, STEPS = (8, 12, 3, 16, 4, 4) if TINY else (256, 96, 12, 1024, 1024, 400)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(SENSORS, HIDDEN, num_layers=2, batch_first=True)
        self.read = nn.Linear(HIDDEN, FUTURE * SENSORS)

    def forward(self, past):
        _, state = self.gru(past)
        return self.read(state[-1]).unflatten(-1, (FUTURE, SENSORS))


def windows(series, device):
    spread = torch.arange(PAST + FUTURE, device=device)
    for _ in range(STEPS):
        begin = torch.randint(len(series) - PAST - FUTURE, (BATCH, 1), device=device)
        both = series[begin + spread]
        yield both[:, :PAST], both[:, PAST:]


def main():
    torch.manual_seed(20)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    series = torch.randn(200 if TINY else 20_000, SENSORS, device=device).cumsum(0)
    series = (series - series.mean(0)) / series.std(0)
    model = Forecast().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    average = torch.zeros((), device=device)
    for past, future in windows(series, device):
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(past)
        loss = nn.functional.l1_loss(guess.float(), future)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.lerp_(loss.detach(), 0.05)
    print(f"error {average.item():.4f}")


main()
