"""Hyperspectral drill cores in two stages: a denoising autoencoder, then grades from its frozen codes."""
import copy
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


class Stage:
    """Common part of both stages; a stage says what it trains and what its loss is."""

    title = ""
    lr = 1e-3

    def __init__(self, steps, batch, data):
        self.steps, self.batch, self.data = steps, batch, data
        self.optimizer = torch.optim.AdamW(self.trained(), lr=self.lr, weight_decay=1e-4, fused=True)

    def trained(self):
        raise NotImplementedError

    def loss(self, spectra, grades):
        raise NotImplementedError

    def score(self):
        return ""

    def set_rate(self, step):
        rate = self.lr * 0.5 * (1 + math.cos(math.pi * step / self.steps))
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def batches(self):
        """Endless passes over the cores, in a new order each time."""
        while True:
            for rows in torch.randperm(len(self.data.spectra)).split(self.batch):
                if len(rows) == self.batch:
                    yield self.data.spectra[rows], self.data.grades[rows]

    def run(self):
        total, since = torch.zeros(()), time.perf_counter()
        every = self.steps // 5
        for step, (spectra, grades) in zip(range(1, self.steps + 1), self.batches()):
            self.set_rate(step)
            self.optimizer.zero_grad()
            loss = self.loss(spectra, grades)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
            if step % every == 0:
                now = time.perf_counter()
                print(f"{self.title:8s} {step:4d}  loss {float(total) / every:.4f}  "
                      f"{1000 * (now - since) / every:.1f} ms/step  {self.score()}")
                total.zero_()
                since = time.perf_counter()


class Cores:
    def __init__(self, count, bands, minerals, seed):
        g = torch.Generator().manual_seed(seed)
        axis = torch.linspace(0, 1, bands)
        centre = torch.rand(minerals, 4, 1, generator=g)
        width = torch.rand(minerals, 4, 1, generator=g) * 0.03 + 0.01
        ends = torch.exp(-0.5 * ((axis - centre) / width).square()).sum(1)
        mix = torch.rand(count, minerals, generator=g).pow_(4)
        self.grades = mix / mix.sum(1, keepdim=True)
        self.spectra = self.grades @ ends + 0.02 * torch.randn(count, bands, generator=g)

    def put_aside(self, count):
        """Takes the last cores out, as a set of their own."""
        aside = copy.copy(self)
        aside.grades, aside.spectra = self.grades[-count:], self.spectra[-count:]
        self.grades, self.spectra = self.grades[:-count], self.spectra[:-count]
        return aside


def spoiled(spectra):
    """Another lamp and another detector noise each time that a core is shown."""
    gain = 1 + 0.2 * torch.randn(len(spectra), 1)
    return torch.addcmul(0.05 * torch.randn_like(spectra), spectra, gain)


def perceptron(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Denoise(Stage):
    title, lr = "denoise", 1e-3

    def __init__(self, encoder, decoder, **rest):
        self.encoder, self.decoder = encoder, decoder
        super().__init__(**rest)

    def trained(self):
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def loss(self, spectra, grades):
        return F.mse_loss(self.decoder(self.encoder(spoiled(spectra))), spectra)


class Grade(Stage):
    title, lr = "grade", 2e-3

    def __init__(self, encoder, head, held, **rest):
        self.encoder = encoder.requires_grad_(False).eval()
        self.head, self.held = head, held
        super().__init__(**rest)

    def trained(self):
        return self.head.parameters()

    def loss(self, spectra, grades):
        with torch.no_grad():
            codes = self.encoder(spoiled(spectra))
        return F.kl_div(F.log_softmax(self.head(codes), 1), grades, reduction="batchmean")

    @torch.inference_mode()
    def score(self):
        parts = []
        for rows in torch.arange(len(self.held.spectra)).split(512):
            parts.append(self.head(self.encoder(spoiled(self.held.spectra[rows]))).softmax(1))
        error = (torch.cat(parts) - self.held.grades).abs().sum(1).mean()
        return f"held-out error {float(error):.3f}"


if __name__ == "__main__":
    torch.manual_seed(30)
    bands, minerals, code = 256, 16, 64
    cores = Cores(10_000, bands, minerals, seed=6)
    held = cores.put_aside(1024)
    encoder, decoder = perceptron(bands, 512, 512, code), perceptron(code, 512, 512, bands)
    Denoise(encoder, decoder, steps=500, batch=256, data=cores).run()
    Grade(encoder, perceptron(code, 768, 768, minerals), held, steps=700, batch=256, data=cores).run()
