"""VQ-VAE on texture patches: convolutional encoder, codebook kept by exponential averages, decoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


class VectorQuantizerEMA(nn.Module):
    def __init__(self, codes, dim, decay=0.99, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("codebook", torch.randn(codes, dim))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codebook.clone())

    @torch.no_grad()
    def nearest(self, flat):
        return torch.cdist(flat, self.codebook).argmin(1)

    @torch.no_grad()
    def update(self, flat, index):
        counts = torch.zeros_like(self.counts).index_add_(0, index, torch.ones_like(index, dtype=flat.dtype))
        sums = torch.zeros_like(self.sums).index_add_(0, index, flat)
        self.counts.lerp_(counts, 1 - self.decay)
        self.sums.lerp_(sums, 1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.codebook.copy_(self.sums / smoothed[:, None])

    def forward(self, z):
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        index = self.nearest(flat)
        chosen = F.embedding(index, self.codebook)
        if self.training:
            self.update(flat.detach(), index)
        commitment = F.mse_loss(flat, chosen)
        quantized = flat + (chosen - flat).detach()
        return quantized.view(b, h, w, d).permute(0, 3, 1, 2), commitment, index


class Res(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Conv2d(n, n, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(n, n, 1))

    def forward(self, x):
        return x + self.net(x)


class VQVAE(nn.Module):
    def __init__(self, width, dim, codes):
        super().__init__()
        w = width
        self.encoder = nn.Sequential(
            nn.Conv2d(3, w // 2, 4, 2, 1), nn.ReLU(inplace=True), nn.Conv2d(w // 2, w, 4, 2, 1), nn.ReLU(inplace=True),
            nn.Conv2d(w, w, 4, 2, 1), Res(w), Res(w), nn.ReLU(inplace=True), nn.Conv2d(w, dim, 1),
        )
        self.quantizer = VectorQuantizerEMA(codes, dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, w, 3, padding=1), Res(w), Res(w), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(w, w, 4, 2, 1), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(w, w // 2, 4, 2, 1), nn.ReLU(inplace=True), nn.ConvTranspose2d(w // 2, 3, 4, 2, 1),
        )

    def forward(self, x):
        quantized, commitment, index = self.quantizer(self.encoder(x).float())
        return self.decoder(quantized), commitment, index


def main(size=256, batch=64, width=128, dim=64, codes=512, steps=250, pool=512):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    textures = torch.randint(0, 256, (pool, 3, size, size), dtype=torch.uint8, device=DEVICE)
    textures = textures.contiguous(memory_format=torch.channels_last)
    model = VQVAE(width, dim, codes).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, fused=GPU)
    sums = torch.zeros(2, device=DEVICE)
    for step in range(1, steps + 1):
        x = textures[torch.randint(0, pool, (batch,), device=DEVICE)].float().div_(127.5).sub_(1)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            restored, commitment, index = model(x)
        reconstruction = F.mse_loss(restored.float(), x)
        optimizer.zero_grad()
        (reconstruction + 0.25 * commitment).backward()
        optimizer.step()
        sums += torch.stack([reconstruction, commitment]).detach()
        if step % 50 == 0 or step == steps:
            print(step, [round(v / step, 4) for v in sums.tolist()])


if __name__ == "__main__":
    if GPU:
        main()
    else:
        main(size=32, batch=2, width=16, dim=8, codes=16, steps=3, pool=4)
