"""Answers batches of search requests: coarse scores over all passages, then a cross-encoder over the best."""
import contextlib
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = "SMALL" in os.environ
PASSAGES, DIM, LENGTH, SHORT, REQUESTS, ROUNDS = (200, 32, 8, 4, 2, 30) if tiny else (300_000, 384, 64, 32, 16, 120)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextlib.contextmanager
def scratch():
    """Large temporary scores live only inside."""
    try:
        yield
    finally:
        pass


class CrossEncoder(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.words = nn.Embedding(4096, d)
        self.kind = nn.Embedding(2, d)
        layer = nn.TransformerEncoderLayer(d, d // 32, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(d, 1)

    def forward(self, question, passage):
        q = self.words(question) + self.kind.weight[0]
        p = self.words(passage) + self.kind.weight[1]
        return self.out(self.body(torch.cat([q, p], 1))[:, 0]).squeeze(-1)


class Service:
    def __init__(self):
        g = torch.Generator(device).manual_seed(0)
        self.vectors = F.normalize(torch.randn(PASSAGES, DIM, device=device, generator=g), dim=1).bfloat16()
        self.texts = torch.randint(4096, (PASSAGES, LENGTH), device=device, generator=g)
        self.encoder = CrossEncoder(DIM, 1 if tiny else 6).to(device, torch.bfloat16).eval()

    def coarse(self, vectors):
        scores = vectors @ self.vectors.T
        return scores.topk(SHORT, dim=1).indices

    def rerank(self, questions, found):
        passages = self.texts[found.flatten()]
        repeated = questions.repeat_interleave(SHORT, 0, output_size=len(passages))
        score = self.encoder(repeated, passages).view(-1, SHORT)
        return found.gather(1, score.argmax(1, keepdim=True)).squeeze(1)

    @torch.inference_mode()
    def answer(self, vectors, questions):
        with scratch():
            found = self.coarse(vectors)
        with scratch():
            return self.rerank(questions, found)


def requests():
    g = torch.Generator(device).manual_seed(1)
    for _ in range(ROUNDS):
        yield (
            torch.randn(REQUESTS, DIM, device=device, generator=g).bfloat16(),
            torch.randint(4096, (REQUESTS, LENGTH // 2), device=device, generator=g),
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    service = Service()
    answers = [service.answer(*request) for request in requests()]
    print(len(answers), "rounds, checksum", torch.cat(answers).sum().item())
