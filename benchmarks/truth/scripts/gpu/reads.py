"""A transformer under autocast that reads its loss, its accuracy and a gradient's norm every step."""

import time

import torch
import torch.nn.functional as F
from torch import nn

BATCH, LENGTH, WIDTH, WORDS = 16, 256, 512, 16000


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        h = self.words(tokens)
        h = self.body(h)
        return self.head(h)


def main():
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    history = []
    while True:
        tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        hits = (logits.argmax(-1) == tokens).float().mean().item()
        history.append((loss.item(), norm.item(), hits))
        time.sleep(0.003)


main()
