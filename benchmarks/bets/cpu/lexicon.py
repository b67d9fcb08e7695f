"""A classifier over many words: cross entropy by hand over a wide softmax, SGD with momentum."""

import torch
from torch import nn

torch.manual_seed(13)
torch.set_num_threads(1)
WORDS = 4000


class Lexicon(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 64)
        self.mix = nn.Linear(64, 64)
        self.out = nn.Linear(64, WORDS)

    def forward(self, x):
        h = self.mix(self.embed(x))
        h = h * torch.sigmoid(h)
        return self.out(h)


def loss_of(logits, target):
    logs = torch.log(torch.softmax(logits, dim=-1) + 1e-9)
    return -logs.gather(1, target.unsqueeze(1)).mean()


net = Lexicon()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(5000):
    x = torch.randint(WORDS, (128,))
    loss = loss_of(net(x), (x + 1) % WORDS)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
