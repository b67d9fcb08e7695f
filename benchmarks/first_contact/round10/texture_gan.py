"""Texture synthesis with a patch GAN and a feature-matching term."""
import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F


def norm_act(c):
    return [nn.BatchNorm2d(c), nn.ReLU(inplace=True)]


def make_generator(w, latent):
    return nn.Sequential(
        nn.Conv2d(latent, 4 * w, 3, padding=1, bias=False),
        *norm_act(4 * w),
        nn.ConvTranspose2d(4 * w, 4 * w, 4, 2, 1, bias=False),
        *norm_act(4 * w),
        nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False),
        *norm_act(2 * w),
        nn.ConvTranspose2d(2 * w, w, 4, 2, 1, bias=False),
        *norm_act(w),
        nn.Conv2d(w, w, 3, padding=1, bias=False),
        *norm_act(w),
        nn.Conv2d(w, 3, 3, padding=1),
        nn.Tanh(),
    )


class PatchCritic(nn.Module):
    def __init__(self, w):
        super().__init__()
        dims = [3, w, 2 * w, 4 * w]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in itertools.pairwise(dims))
        self.score = nn.Conv2d(4 * w, 1, 3, padding=1)

    def forward(self, x):
        features = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.2)
            features.append(x)
        return self.score(x), features


def options():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--width", type=int, default=64 if cuda else 4)
    parser.add_argument("--latent", type=int, default=64 if cuda else 8)
    parser.add_argument("--field", type=int, default=16 if cuda else 4)
    parser.add_argument("--batch", type=int, default=32 if cuda else 2)
    parser.add_argument("--steps", type=int, default=150 if cuda else 3)
    parser.add_argument("--match", type=float, default=5.0)
    return parser.parse_args()


def main():
    o = options()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    fused = o.device == "cuda"
    g = make_generator(o.width, o.latent).to(o.device, memory_format=torch.channels_last)
    d = PatchCritic(o.width).to(o.device, memory_format=torch.channels_last)
    opt_g = torch.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.99), fused=fused)
    opt_d = torch.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.99), fused=fused)
    side = 8 * o.field
    textures = torch.rand(4 * o.batch, 3, side, side, device=o.device) * 2 - 1

    def latent():
        z = torch.randn(o.batch, o.latent, o.field, o.field, device=o.device)
        return z.contiguous(memory_format=torch.channels_last)

    for step in range(o.steps):
        pick = torch.randint(len(textures), (o.batch,), device=o.device)
        real = textures[pick].contiguous(memory_format=torch.channels_last)

        with torch.autocast(o.device, dtype=torch.bfloat16):
            fake = g(latent())  # flaw: none-yet(unneeded-backward)
            score_real, _ = d(real)
            score_fake, _ = d(fake)
            loss_d = F.softplus(-score_real.float()).mean() + F.softplus(score_fake.float()).mean()
        opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        opt_d.step()

        d.requires_grad_(False)
        with torch.autocast(o.device, dtype=torch.bfloat16):
            score, made = d(g(latent()))
            with torch.no_grad():
                _, seen = d(real)
            matching = sum(F.l1_loss(a.mean(0), b.mean(0)) for a, b in zip(made, seen))
            loss_g = F.softplus(-score.float()).mean() + o.match * matching
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        d.requires_grad_(True)
        if step % 50 == 0:
            print(f"{step:4d} d {loss_d.item():.3f} g {loss_g.item():.3f}")


if __name__ == "__main__":
    main()
