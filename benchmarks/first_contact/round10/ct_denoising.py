"""Low-dose CT denoising with a 3D residual network on random patches."""
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("ct")


class Denoiser(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.head = nn.Conv3d(1, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv3d(width, width, 3, padding=1, bias=False) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm3d(width) for _ in range(depth))
        self.tail = nn.Conv3d(width, 1, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.head(x), inplace=True)
        for conv, norm in zip(self.body, self.norms):
            h = F.relu(norm(conv(h)), inplace=True)
        return x - self.tail(h)


class PatchSource:
    """Volumes resident on the device; patches are cut at random places."""

    def __init__(self, device, volume, patch, batch):
        axis = torch.linspace(-1, 1, volume, device=device)
        r = (axis[:, None, None] ** 2 + axis[None, :, None] ** 2 + axis**2).sqrt()
        self.volume = torch.sin(12 * r) * (r < 0.9)
        self.patch, self.batch = patch, batch
        self.last = volume - patch

    def draw(self):
        corners = torch.randint(self.last, (self.batch, 3)).tolist()
        p = self.patch
        clean = torch.stack([self.volume[z : z + p, y : y + p, x : x + p] for z, y, x in corners])[:, None]
        clean = clean.contiguous(memory_format=torch.channels_last_3d)
        return clean + 0.2 * torch.randn_like(clean), clean


class Engine:
    def __init__(self, model, source, steps, lr=1e-3):
        self.model, self.source, self.steps = model, source, steps
        self.device = source.volume.device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr, fused=self.device.type == "cuda")
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def train_step(self):
        noisy, clean = self.source.draw()
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            restored = self.model(noisy)
        loss = F.l1_loss(restored.float(), clean)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def run(self):
        for step in range(self.steps):
            loss = self.train_step()
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
            if step % 50 == 0:
                log.info("step %d loss %.4f", step, loss.item())
        return loss.item()


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    volume, patch, batch, width, depth, steps = (256, 48, 6, 64, 6, 200) if gpu else (32, 12, 2, 4, 2, 3)
    model = Denoiser(width, depth).to(device, memory_format=torch.channels_last_3d)
    engine = Engine(model, PatchSource(device, volume, patch, batch), steps)
    log.info("final loss %.4f", engine.run())


if __name__ == "__main__":
    main()
