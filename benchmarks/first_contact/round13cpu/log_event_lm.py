"""Next-event model for server logs with a large vocabulary of templates."""
import torch
import torch.nn.functional as F
from torch import nn


class EventModel(nn.Module):
    def __init__(self, templates=5000, width=96, context=8):
        super().__init__()
        self.templates = templates
        self.embed = nn.Embedding(templates, width, sparse=False)
        self.mix = nn.Conv1d(width, width, context)
        self.context = context

    def forward(self, events):
        x = F.pad(self.embed(events).transpose(1, 2), (self.context - 1, 0))
        h = torch.tanh(self.mix(x)).transpose(1, 2)
        return F.linear(h, self.embed.weight)


class SurpriseMixin:
    """The negative log-likelihood of what happened next, averaged over all positions."""

    def surprise(self, logits, target):
        probability = torch.softmax(logits, dim=-1)  # flaw: hand-written-loss
        truth = F.one_hot(target, logits.size(-1)).to(logits.dtype)  # flaw: hand-written-loss
        return -(truth * torch.log(probability + 1e-9)).sum(-1).mean()  # flaw: hand-written-loss


class LogStream:
    def __init__(self, templates, batch, length, seed=17):
        self.generator = torch.Generator().manual_seed(seed)
        self.templates, self.batch, self.length = templates, batch, length

    def __iter__(self):
        while True:
            start = torch.randint(self.templates, (self.batch, 1), generator=self.generator)
            stride = torch.randint(1, 4, (self.batch, 1), generator=self.generator)
            yield (start + stride * torch.arange(self.length + 1)) % self.templates


class Trainer(SurpriseMixin):
    def __init__(self, model, stream, lr=2e-3):
        self.model = model
        self.stream = stream
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)

    def step(self, events):
        loss = self.surprise(self.model(events[:, :-1]), events[:, 1:])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, steps):
        losses = [self.step(events) for _, events in zip(range(steps), self.stream)]
        return losses[0], sum(losses[-10:]) / 10


if __name__ == "__main__":
    torch.manual_seed(2)
    trainer = Trainer(EventModel(), LogStream(5000, 12, 48))
    print("loss at start and end: {:.3f} {:.3f}".format(*trainer.fit(70)))
