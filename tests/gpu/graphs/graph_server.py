"""Inference from CUDA graphs, one for each batch size, as servers keep them."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = self.up(self.norm(x))
        h = torch.special.i0e(h)  # replayed: i0e
        return x + self.down(h)


class Server:
    def __init__(self, model, width, sizes):
        self.graphs = {}
        for size in sizes:
            self.graphs[size] = self.capture(model, torch.zeros(size, 64, width, device="cuda"))

    @torch.no_grad()
    def capture(self, model, given):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                model(given)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            features = model(given)
            answer = torch.erfinv(features.tanh())  # replayed: erfinv
        return graph, given, answer

    def answer(self, request):
        graph, given, answer = self.graphs[len(request)]
        given.copy_(request)
        graph.replay()
        return answer.cpu()


width = 1024
model = nn.Sequential(*(Block(width) for _ in range(4))).cuda().eval()
server = Server(model, width, (1, 4, 16))
requests = [torch.randn(size, 64, width, device="cuda") for size in (16, 4, 16, 1)]
for _ in range(400):
    with torch.profiler.record_function("step"):
        for request in requests:
            server.answer(request)
