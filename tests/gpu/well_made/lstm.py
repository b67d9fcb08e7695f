"""A character model with cuDNN's LSTM in bfloat16; batches are slices of one text on the device."""

import torch
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_

ALPHABET, HIDDEN, BATCH, LENGTH = 256, 1024, 512, 256


class CharacterModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(ALPHABET, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, num_layers=2, batch_first=True)
        self.head = nn.Linear(HIDDEN, ALPHABET)

    def forward(self, characters, state=None):
        hidden, state = self.lstm(self.embedding(characters), state)
        return self.head(hidden), state


class Trainer:
    def __init__(self, text):
        self.model = CharacterModel().to("cuda", torch.bfloat16)
        self.optimizer = optim.Adam(self.model.parameters(), lr=2e-3, fused=True)
        self.criterion = nn.CrossEntropyLoss()
        self.columns = text[: len(text) // BATCH * BATCH].view(BATCH, -1)

    def batches(self):
        for start in range(0, self.columns.shape[1] - LENGTH - 1, LENGTH):
            yield (
                self.columns[:, start : start + LENGTH],
                self.columns[:, start + 1 : start + LENGTH + 1],
            )

    def fit(self, epochs):
        losses = []
        for _ in range(epochs):
            state = None
            for characters, following in self.batches():
                scores, state = self.model(characters, state)
                state = tuple(part.detach() for part in state)
                loss = self.criterion(scores.flatten(0, 1), following.flatten())
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
                self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).tolist()


text = torch.randint(0, ALPHABET, (30_000_000,), dtype=torch.int64)
print(Trainer(text.cuda()).fit(epochs=20))
