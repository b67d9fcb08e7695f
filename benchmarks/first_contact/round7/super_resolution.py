import torch
import torch.nn as nn
import torch.nn.functional as F

# Four-fold super-resolution with sub-pixel convolution; validation every few hundred steps.

CUDA = torch.cuda.is_available()
SETTINGS = dict(width=96, layers=10, batch=64, patch=64, pool=512, steps=240, lr=5e-4)
if not CUDA:
    SETTINGS.update(width=8, layers=2, batch=2, patch=8, pool=4, steps=4)


def make_model(width, layers):
    body = [nn.Conv2d(3, width, 5, padding=2), nn.ReLU(inplace=True)]
    for _ in range(layers):
        body += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(*body, nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(4))


def make_pairs(count, patch, device):
    coarse = torch.rand(count, 3, patch // 2, patch // 2, device=device)
    fine = F.interpolate(coarse, scale_factor=8, mode="bicubic", align_corners=False).clamp_(0, 1)
    low = F.avg_pool2d(fine, 4)
    return low.contiguous(memory_format=torch.channels_last), fine.contiguous(memory_format=torch.channels_last)


def validate(model, low, fine, batch):
    model.eval()
    total = torch.zeros((), device=low.device)
    with torch.inference_mode(), torch.autocast(low.device.type, dtype=torch.bfloat16):
        for i in range(0, len(low), batch):
            total += F.mse_loss(model(low[i : i + batch]).float(), fine[i : i + batch], reduction="sum")
    model.train()
    return -10 * torch.log10(total / fine.numel()).item()


def train(width, layers, batch, patch, pool, steps, lr):
    device = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    low, fine = make_pairs(pool, patch, device)
    held_low, held_fine = make_pairs(batch * 2, patch, device)
    model = make_model(width, layers).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for step in range(1, steps + 1):
        pick = torch.randint(0, pool, (batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            restored = model(low[pick])
        loss = F.l1_loss(restored.float(), fine[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 2) == 0:
            print(f"step {step}: {validate(model, held_low, held_fine, batch):.2f} dB")


if __name__ == "__main__":
    train(**SETTINGS)
