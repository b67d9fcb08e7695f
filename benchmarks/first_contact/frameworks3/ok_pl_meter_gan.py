"""GAN that makes up a day of electricity-meter readings (96 quarter hours), conditioned on the kind of house.

Lightning with manual optimization: two optimizers, the critic is trained twice per batch of the generator.
"""
import os

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()
SLOTS, KINDS = 96, 16


def meter_days(count, seed=0):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, KINDS, (count,), generator=g)
    t = torch.linspace(0, 6.283, SLOTS)
    phase = kind[:, None] / KINDS * 6.283
    load = 0.4 * torch.sin(t + phase) + 0.2 * torch.sin(2 * t - phase)
    return load + 0.05 * torch.randn(count, SLOTS, generator=g), kind


def loader(batch_size):
    days = TensorDataset(*meter_days(20_480 if SMALL else 819_200))
    order = BatchSampler(RandomSampler(days), batch_size, drop_last=True)
    return DataLoader(days, sampler=order, batch_size=None, pin_memory=CUDA)


def mlp(inputs, width, depth, outputs):
    layers = [nn.Linear(inputs, width), nn.LeakyReLU(0.2)]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


class MeterGAN(pl.LightningModule):
    def __init__(self, width=4096, depth=4, latent=64, lr=1e-4, critic_rounds=2):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.embed_g, self.embed_d = nn.Embedding(KINDS, 32), nn.Embedding(KINDS, 32)
        self.generator = mlp(latent + 32, width, depth, SLOTS)
        self.critic = mlp(SLOTS + 32, width, depth, 1)

    def forward(self, kind):
        z = torch.randn(len(kind), self.hparams.latent, device=self.device)
        return self.generator(torch.cat([z, self.embed_g(kind)], 1))

    def judge(self, days, kind):
        return self.critic(torch.cat([days, self.embed_d(kind)], 1))

    def training_step(self, batch, batch_idx):
        real, kind = batch
        opt_g, opt_d = self.optimizers()

        self.toggle_optimizer(opt_d)
        for _ in range(self.hparams.critic_rounds):
            with torch.no_grad():
                fake = self(kind)
            loss_d = F.softplus(-self.judge(real, kind)).mean() + F.softplus(self.judge(fake, kind)).mean()
            opt_d.zero_grad()
            self.manual_backward(loss_d)
            opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        loss_g = F.softplus(-self.judge(self(kind), kind)).mean()
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        return {"loss_d": loss_d.detach(), "loss_g": loss_g.detach()}

    def configure_optimizers(self):
        own = {"lr": self.hparams.lr, "betas": (0.5, 0.99), "fused": True}
        g = [*self.generator.parameters(), *self.embed_g.parameters()]
        d = [*self.critic.parameters(), *self.embed_d.parameters()]
        return torch.optim.Adam(g, **own), torch.optim.Adam(d, **own)


class Report(pl.Callback):
    def __init__(self, every):
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx % self.every == 0:
            print(f"{batch_idx}: critic {outputs['loss_d'].item():.3f}, generator {outputs['loss_g'].item():.3f}")


def main():
    pl.seed_everything(21)
    model = MeterGAN(width=256, depth=2) if SMALL else MeterGAN()
    trainer = pl.Trainer(
        max_epochs=3,
        devices=1,
        precision="bf16-mixed" if CUDA else "32-true",
        callbacks=[Report(every=20)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader(512 if SMALL else 8192))


if __name__ == "__main__":
    main()
