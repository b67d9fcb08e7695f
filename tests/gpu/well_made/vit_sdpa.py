"""A vision transformer whose weights are bfloat16; its block is compiled, region by region."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

DIM, HEADS, DEPTH, PATCH = 1024, 16, 6, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(DIM), nn.LayerNorm(DIM), Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.places = nn.Parameter(torch.zeros(1, 196, DIM))
        self.encoders = nn.ModuleList([Encoder() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        for encoder in self.encoders:
            x = encoder(x)
        return self.head(self.norm(x).mean(1))


def train(model, loader, optimizer, steps=2000):
    done = 0
    while done < steps:
        for images, labels in loader:
            images, labels = images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
            loss = cross_entropy(model(images).float(), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    model = ViT().to("cuda", torch.bfloat16)
    for encoder in model.encoders:
        encoder.compile()
    images = torch.randn(512, 3, 224, 224, dtype=torch.bfloat16)
    data = TensorDataset(images, torch.randint(0, 1000, (len(images),)))
    sampler = RandomSampler(data, replacement=True, num_samples=128 * 2000)
    loader = DataLoader(
        data, batch_size=128, sampler=sampler, num_workers=8, pin_memory=True, persistent_workers=True
    )
    train(model, loader, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))
