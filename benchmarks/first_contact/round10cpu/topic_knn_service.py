"""Answers nearest-neighbour queries over document vectors from a request queue."""

import asyncio

import torch
import torch.nn.functional as F


class Index:
    def __init__(self, vectors):
        self.vectors = F.normalize(vectors, dim=1)

    @torch.inference_mode()
    def search(self, queries, k):
        scores = F.normalize(queries, dim=1) @ self.vectors.T
        return scores.topk(k, dim=1)


class BatchingServer:
    """Collects requests for a moment and answers them with one matrix product."""

    def __init__(self, index, k=8, limit=64):
        self.index, self.k, self.limit = index, k, limit
        self.requests = asyncio.Queue()
        self.batches = 0

    async def ask(self, vector):
        future = asyncio.get_running_loop().create_future()
        await self.requests.put((vector, future))
        return await future

    async def serve(self):
        while True:
            pending = [await self.requests.get()]
            while len(pending) < self.limit and not self.requests.empty():
                pending.append(self.requests.get_nowait())
            queries = torch.stack([vector for vector, _ in pending])
            scores, found = self.index.search(queries, self.k)
            for (_, future), s, f in zip(pending, scores.tolist(), found.tolist()):
                future.set_result(list(zip(f, s)))
            self.batches += 1


async def client(server, vectors):
    total = 0.0
    for vector in vectors:
        answer = await server.ask(vector)
        total += answer[0][1]
    return total


async def main():
    torch.manual_seed(0)
    server = BatchingServer(Index(torch.randn(30_000, 96)))
    task = asyncio.create_task(server.serve())
    queries = torch.randn(64, 600, 96)
    totals = await asyncio.gather(*(client(server, q.unbind()) for q in queries))
    task.cancel()
    print(f"{queries.shape[0] * queries.shape[1]} queries in {server.batches} batches")
    print(f"mean best score {sum(totals) / queries[..., 0].numel():.4f}")


if __name__ == "__main__":
    asyncio.run(main())
