"""Wasserstein GAN with gradient penalty on small images."""
import torch
from torch import autograd, nn

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = True
torch.manual_seed(0)

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
batch, width, latent = (128, 96, 128) if cuda else (4, 8, 16)
iterations, critic_steps, penalty = (150 if cuda else 2), 3, 10.0


class Critic(nn.Sequential):
    def __init__(self, w):
        super().__init__(
            nn.Conv2d(3, w, 3, 1, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(w, 2 * w, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * w, 4 * w, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(4 * w, 4 * w, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(4 * w * 16, 1),
        )


class Generator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
        self.fc = nn.Linear(latent, 4 * w * 16)
        self.net = nn.Sequential(
            nn.ConvTranspose2d(4 * w, 4 * w, 4, 2, 1, bias=False),
            nn.BatchNorm2d(4 * w),
            nn.ReLU(True),
            nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * w),
            nn.ReLU(True),
            nn.ConvTranspose2d(2 * w, 3, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        x = self.fc(z).view(-1, 4 * self.w, 4, 4)
        return self.net(x.contiguous(memory_format=torch.channels_last))


def gradient_penalty(critic, real, fake):
    mix = torch.lerp(real, fake, torch.rand(len(real), 1, 1, 1, device=device))
    mix = mix.contiguous(memory_format=torch.channels_last).requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        score = critic(mix).float().sum()
    (slope,) = autograd.grad(score, mix, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


critic = Critic(width).to(device, memory_format=torch.channels_last)
generator = Generator(width).to(device, memory_format=torch.channels_last)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=cuda)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=cuda)
pool = (torch.rand(4096 if cuda else 16, 3, 32, 32, device=device) * 2 - 1).to(memory_format=torch.channels_last)

for iteration in range(iterations):
    for _ in range(critic_steps):
        real = pool[torch.randint(len(pool), (batch,), device=device)]
        z = torch.randn(batch, latent, device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            with torch.no_grad():
                fake = generator(z)
            loss_c = critic(fake).float().mean() - critic(real).float().mean()
        loss_c = loss_c + penalty * gradient_penalty(critic, real, fake.float())
        opt_c.zero_grad(set_to_none=True)
        loss_c.backward()
        opt_c.step()

    critic.requires_grad_(False)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss_g = -critic(generator(torch.randn(batch, latent, device=device))).float().mean()
    opt_g.zero_grad(set_to_none=True)
    loss_g.backward()
    opt_g.step()
    critic.requires_grad_(True)
    if iteration % 20 == 0:
        print(f"{iteration:4d} critic {loss_c.item():.3f} generator {loss_g.item():.3f}")
