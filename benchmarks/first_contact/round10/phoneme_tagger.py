"""Frame-wise phoneme recognition: convolutional front end and transformer encoder."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

GPU = torch.cuda.is_available()
MELS, FRAMES = (80, 800) if GPU else (16, 32)
CHANNELS, DIM, HEADS, LAYERS = (64, 512, 8, 8) if GPU else (8, 32, 2, 2)
PHONES = 64
BATCH = 64 if GPU else 2
STEPS = 300 if GPU else 5
WORKERS = 8 if GPU else 0


class Utterances(IterableDataset):
    """Cuts of a long feature matrix, all of the same length."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.features = rng.standard_normal((FRAMES * 30, MELS), dtype=np.float32)
        self.phones = np.repeat(rng.integers(0, PHONES, FRAMES * 30 // 4), 4)

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        for number in range(worker, BATCH * STEPS, workers):
            start = np.random.default_rng(number).integers(0, FRAMES * 29 // 4) * 4
            x = self.features[start : start + FRAMES]
            y = self.phones[start : start + FRAMES : 4]
            yield torch.from_numpy(x), torch.from_numpy(y)


class FrontEnd(nn.Module):
    """A quarter of the frame rate, a quarter of the bands."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, CHANNELS, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 3, stride=2, padding=1)
        self.project = nn.Linear(CHANNELS * MELS // 4, DIM)

    def forward(self, x):
        x = x[:, None].to(memory_format=torch.channels_last)
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.project(x.permute(0, 2, 3, 1).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PhonemeTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = FrontEnd()
        self.position = nn.Parameter(torch.randn(FRAMES // 4, DIM) * 0.02)
        self.layers = nn.Sequential(*[EncoderLayer() for _ in range(LAYERS)])
        self.classify = nn.Linear(DIM, PHONES)

    def forward(self, x):
        return self.classify(self.layers(self.front(x) + self.position))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if GPU else "cpu")
    model = PhonemeTagger().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loader = DataLoader(
        Utterances(),
        batch_size=BATCH,
        num_workers=WORKERS,
        pin_memory=GPU,
        persistent_workers=WORKERS > 0,
    )
    errors = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader, 1):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        errors += (logits.argmax(-1) != y).float().mean()
        if step % 40 == 0:
            print(f"{step}: frame error rate {errors.item() / step:.4f}")
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
