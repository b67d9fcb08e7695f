"""Next-word model with a tied softmax over a large vocabulary."""

import torch
from torch import nn
import torch.nn.functional as F


def nll(logits, targets):
    """Negative log likelihood of the targets under the softmax of the logits."""
    return F.cross_entropy(logits, targets)


class ContextModel(nn.Module):
    def __init__(self, vocab, context, width):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.mix = nn.Sequential(
            nn.Flatten(),
            nn.Linear(context * width, 2 * width),
            nn.Tanh(),
            nn.Linear(2 * width, width),
        )
        self.bias = nn.Parameter(torch.zeros(vocab))
        nn.init.normal_(self.words.weight, std=0.05)

    def forward(self, context):
        hidden = self.mix(self.words(context))
        return F.linear(hidden, self.words.weight, self.bias)


def corpus(tokens, vocab, generator):
    """A Markov-like stream: each word often determines the next."""
    jump = torch.rand(tokens, generator=generator) < 0.3
    noise = torch.randint(vocab, (tokens,), generator=generator)
    stream = torch.arange(tokens) * 7 % vocab
    return torch.where(jump, noise, stream)


def perplexity(model, windows):
    with torch.inference_mode():
        return F.cross_entropy(model(windows[:, :-1]), windows[:, -1]).exp()


def main():
    torch.manual_seed(0)
    vocab, context = 6000, 4
    stream = corpus(80_000, vocab, torch.Generator().manual_seed(9))
    windows = stream.unfold(0, context + 1, 1)
    held_out, windows = windows[:512], windows[512:]
    model = ContextModel(vocab, context, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    for step in range(1, 151):
        batch = windows[torch.randint(len(windows), (256,))]
        loss = nll(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f} perplexity {perplexity(model, held_out):.1f}")


if __name__ == "__main__":
    main()
