"""Unrolled MRI reconstruction: cascades of a CNN prior and k-space data consistency."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True


class Prior(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.head = nn.Conv2d(8, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))
        self.tail = nn.Conv2d(width, 8, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.head(x), inplace=True)
        for conv in self.body:
            h = F.relu(conv(h), inplace=True)
        return self.tail(h)[:, :2]


class Cascade(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.prior = Prior(width, layers)
        self.weight = nn.Parameter(torch.tensor(0.5))

    def forward(self, image, measured, mask):
        x = torch.view_as_real(image).permute(0, 3, 1, 2)
        x = F.pad(x, (0, 0, 0, 0, 0, 6)).contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            r = self.prior(x)
        image = image + torch.view_as_complex(r.float().permute(0, 2, 3, 1).contiguous())
        k = torch.fft.fft2(image, norm="ortho")
        k = torch.where(mask, torch.lerp(k, measured, self.weight.to(k.dtype)), k)
        return torch.fft.ifft2(k, norm="ortho")


class UnrolledNet(nn.Module):
    def __init__(self, cascades, width, layers):
        super().__init__()
        self.cascades = nn.ModuleList(Cascade(width, layers) for _ in range(cascades))

    def forward(self, measured, mask):
        image = torch.fft.ifft2(measured, norm="ortho")
        for cascade in self.cascades:
            image = cascade(image, measured, mask)
        return image


def phantoms(n, size, device):
    axis = torch.linspace(-1, 1, size, device=device)
    out = torch.zeros(n, size, size, device=device)
    for _ in range(6):
        c = torch.rand(n, 5, 1, 1, device=device)
        dx = (axis[None, :, None] - (c[:, 0] * 1.2 - 0.6)) / (0.1 + 0.5 * c[:, 1])
        dy = (axis[None, None, :] - (c[:, 2] * 1.2 - 0.6)) / (0.1 + 0.5 * c[:, 3])
        out += c[:, 4] * (dx.square() + dy.square() < 1)
    return out


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=320 if cuda else 24)
    ap.add_argument("--batch", type=int, default=16 if cuda else 2)
    ap.add_argument("--cascades", type=int, default=5 if cuda else 2)
    ap.add_argument("--width", type=int, default=96 if cuda else 8)
    ap.add_argument("--layers", type=int, default=4 if cuda else 1)
    ap.add_argument("--steps", type=int, default=80 if cuda else 3)
    ap.add_argument("--acceleration", type=int, default=4)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)

    truth = phantoms(8 * args.batch, args.size, device)
    columns = torch.rand(args.size, device=device) < 1 / args.acceleration
    columns[: args.size // 25 + 1] = True
    columns[-(args.size // 25 + 1) :] = True
    mask = columns.view(1, 1, -1)

    model = UnrolledNet(args.cascades, args.width, args.layers).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=cuda)
    for step in range(args.steps):
        target = truth[torch.randint(len(truth), (args.batch,), device=device)]
        measured = torch.fft.fft2(target.to(torch.complex64), norm="ortho") * mask
        recon = model(measured, mask)
        loss = F.l1_loss(recon.real, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} l1 {loss.item():.5f}")
    print(f"final l1 {loss.item():.6f}")


if __name__ == "__main__":
    main()
