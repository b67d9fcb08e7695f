"""nn.LSTM on characters, with the text prepared in Python each step."""

import string

import torch
from torch import nn

ALPHABET = {letter: at for at, letter in enumerate(string.ascii_lowercase + " ")}
TEXT = ("the quick brown fox jumps over the lazy dog " * 200).strip()


def windows(text, length, count, start):
    found = []
    for at in range(count):
        begin = (start + 31 * at) % (len(text) - length - 1)
        piece = text[begin : begin + length + 1]
        found.append([ALPHABET[letter] for letter in piece])
    return torch.tensor(found)


def caesar(text, by):
    shifted = []
    for letter in text:
        if letter == " ":
            shifted.append(letter)
        else:
            shifted.append(chr((ord(letter) - 97 + by) % 26 + 97))
    return "".join(shifted)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(27, 48)
        self.lstm = nn.LSTM(48, 96, batch_first=True)
        self.out = nn.Linear(96, 27)

    def forward(self, tokens):
        states, _ = self.lstm(self.embed(tokens))
        return self.out(states)


model = Model()
optimizer = torch.optim.RMSprop(model.parameters())
step = 0
while step < 10**7:
    text = caesar(TEXT, step % 26)
    tokens = windows(text, 40, 32, step)
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 27), tokens[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
