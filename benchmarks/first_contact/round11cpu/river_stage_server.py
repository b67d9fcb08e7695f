"""Serves river-stage forecasts: requests are pooled into batches and answered by a two-layer LSTM."""

import asyncio
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Request:
    window: torch.Tensor
    answer: asyncio.Future


class StageLSTM(nn.Module):
    def __init__(self, gauges: int, hidden: int, horizon: int):
        super().__init__()
        self.lstm = nn.LSTM(gauges, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(windows)
        return self.head(states[:, -1])


class ForecastServer:
    def __init__(self, model: nn.Module, max_batch: int):
        self.model = model.eval()
        self.max_batch = max_batch
        self.waiting: asyncio.Queue[Request | None] = asyncio.Queue()
        self.batches = 0

    async def ask(self, window: torch.Tensor) -> torch.Tensor:
        request = Request(window, asyncio.get_running_loop().create_future())
        await self.waiting.put(request)
        return await request.answer

    async def pool(self) -> list[Request] | None:
        """Waits for a first request, then takes what else is there."""
        first = await self.waiting.get()
        if first is None:
            return None
        pooled = [first]
        while len(pooled) < self.max_batch and not self.waiting.empty():
            pooled.append(self.waiting.get_nowait())
        return pooled

    def infer(self, windows: torch.Tensor) -> torch.Tensor:
        forecast = self.model(windows)  # flaw: grad-in-eval
        return forecast.detach()  # flaw: grad-in-eval

    async def serve(self) -> None:
        while (pooled := await self.pool()) is not None:
            forecasts = self.infer(torch.stack([r.window for r in pooled]))
            for request, forecast in zip(pooled, forecasts):
                request.answer.set_result(forecast)
            self.batches += 1


async def station(server: ForecastServer, windows: torch.Tensor) -> float:
    total = 0.0
    for window in windows:
        total += (await server.ask(window)).mean().item()
    return total / len(windows)


def recorded_windows(stations: int, asks: int, length: int, gauges: int, seed: int) -> torch.Tensor:
    gen = torch.Generator().manual_seed(seed)
    drift = torch.randn(stations, asks + length, gauges, generator=gen).cumsum(1) * 0.05
    return drift.unfold(1, length, 1)[:, :asks].transpose(2, 3)


async def run(stations: int, asks: int) -> None:
    torch.manual_seed(45)
    gauges, length = 12, 36
    server = ForecastServer(StageLSTM(gauges, hidden=160, horizon=6), max_batch=stations)
    records = recorded_windows(stations, asks, length, gauges, seed=46)
    serving = asyncio.create_task(server.serve())
    means = await asyncio.gather(*(station(server, record) for record in records))
    await server.waiting.put(None)
    await serving
    print(f"{server.batches} batches, mean forecast {sum(means) / len(means):.5f}")
    print(f"highest station {max(means):.5f}, lowest {min(means):.5f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    asyncio.run(run(stations=32, asks=1000))
