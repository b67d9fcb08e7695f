"""Answer a queue of question batches with a decoder whose key/value memory is allocated once."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

if os.environ.get("SMALL") == "1":
    VOCAB, DIM, DEPTH, HEADS, ROOM, USERS, ASK, ROUNDS = 128, 32, 2, 2, 46, 4, 16, 1
else:
    VOCAB, DIM, DEPTH, HEADS, ROOM, USERS, ASK, ROUNDS = 8192, 1024, 8, 16, 512, 256, 448, 2
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = torch.bfloat16 if device.type == "cuda" else torch.float32


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.up, self.down = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(4 * DIM, DIM, bias=False)
        for name in ("k", "v"):
            self.register_buffer(name, torch.zeros(USERS, HEADS, ROOM, DIM // HEADS), persistent=False)

    def project(self, x):
        return self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def close(self, x, y):
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))

    def prompt(self, x):
        q, k, v = self.project(x)
        self.k[:, :, :x.shape[1]].copy_(k)
        self.v[:, :, :x.shape[1]].copy_(v)
        return self.close(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def token(self, x, at, seen):
        q, k, v = self.project(x)
        self.k.index_copy_(2, at, k)
        self.v.index_copy_(2, at, v)
        return self.close(x, F.scaled_dot_product_attention(q, self.k, self.v, attn_mask=seen))


class Answerer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(ROOM, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.RMSNorm(DIM)
        self.register_buffer("places", torch.arange(ROOM), persistent=False)

    def choose(self, x):
        return F.linear(self.norm(x[:, -1]), self.tok.weight).argmax(-1, keepdim=True)

    def prompt(self, ids):
        x = self.tok(ids) + self.pos(self.places[: ids.shape[1]])
        for layer in self.layers:
            x = layer.prompt(x)
        return self.choose(x)

    def token(self, ids, at):
        seen = (self.places <= at).view(1, 1, 1, ROOM)
        x = self.tok(ids) + self.pos(at)
        for layer in self.layers:
            x = layer.token(x, at, seen)
        return self.choose(x)


class Replay:
    """One decoding step, captured once and replayed; calls through where there are no graphs."""

    def __init__(self, model):
        self.model, self.graph = model, None
        self.ids = torch.zeros(USERS, 1, dtype=torch.long, device=device)
        self.at = torch.full((1,), ASK, dtype=torch.long, device=device)
        if device.type == "cuda":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    model.token(self.ids, self.at)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.advance()

    def advance(self):
        self.ids.copy_(self.model.token(self.ids, self.at))
        self.at.add_(1)

    def start(self, ids):
        self.ids.copy_(ids)
        self.at.fill_(ASK)

    def __call__(self):
        self.graph.replay() if self.graph is not None else self.advance()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = Answerer().to(device, dtype).eval()
    step = Replay(model)
    for _ in range(ROUNDS):
        answer = torch.empty(USERS, ROOM - ASK, dtype=torch.long, device=device)
        step.start(model.prompt(torch.randint(VOCAB, (USERS, ASK), device=device)))
        for n in range(ROOM - ASK):
            answer[:, n:n + 1] = step.ids
            step()
        print("tokens:", answer.numel(), "sum:", int(answer.sum()))


if __name__ == "__main__":
    main()
