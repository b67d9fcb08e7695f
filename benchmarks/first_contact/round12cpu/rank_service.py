"""Ranking service: requests are gathered for a few milliseconds and scored as one batch."""
import asyncio
import random

import torch
from torch import nn

TOTAL_REQUESTS = 11200
MAX_BATCH = 16


class Ranker(nn.Module):
    def __init__(self, candidates=40, dim=64):
        super().__init__()
        self.item, self.user = nn.Embedding(5000, dim), nn.Embedding(3000, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.mix = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, user, items):
        h = self.item(items) + self.user(user).unsqueeze(1)
        return self.out(self.mix(h)).squeeze(-1)


class Batcher:
    def __init__(self, model):
        self.model, self.queue = model, asyncio.Queue()
        self.batches = 0

    async def ask(self, user, items):
        answer = asyncio.get_running_loop().create_future()
        await self.queue.put((user, items, answer))
        return await answer

    @torch.inference_mode()
    def score(self, rows):
        users = torch.tensor([u for u, _, _ in rows])
        items = torch.tensor([i for _, i, _ in rows])
        return self.model(users, items).argmax(1).tolist()

    async def serve(self):
        while True:
            rows = [await self.queue.get()]
            while len(rows) < MAX_BATCH:
                try:
                    rows.append(await asyncio.wait_for(self.queue.get(), 0.003))
                except asyncio.TimeoutError:
                    break
            for (_, _, answer), best in zip(rows, self.score(rows)):
                answer.set_result(best)
            self.batches += 1


async def visitor(batcher, seed, n):
    rng = random.Random(seed)
    first = 0
    for _ in range(n):
        best = await batcher.ask(rng.randrange(3000), [rng.randrange(5000) for _ in range(40)])
        first += best == 0
    return first


async def main():
    torch.manual_seed(0)
    batcher = Batcher(Ranker().eval())
    server = asyncio.create_task(batcher.serve())
    first = await asyncio.gather(*(visitor(batcher, s, TOTAL_REQUESTS // 32) for s in range(32)))
    server.cancel()
    print(f"{sum(first)} answers put the first candidate on top; batches full: {batcher.batches <= TOTAL_REQUESTS // 16 + 2}")


asyncio.run(main())
