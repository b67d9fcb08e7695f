"""Video classification with tubelet tokens and divided space-time attention."""

import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
device = "cuda" if CUDA else "cpu"
TIME, SPACE, DIM, HEADS, DEPTH, BATCH, STEPS = (8, 196, 512, 8, 6, 16, 120) if CUDA else (2, 4, 32, 2, 1, 2, 3)
TUBELET = 2 * 3 * 16 * 16
CLASSES = 400


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        *lead, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(-1, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.proj(y.reshape(*lead, n, d))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.local, self.whole = SelfAttention(), SelfAttention()
        self.norm = nn.LayerNorm(DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        x = x + self.local(x.view(-1, TIME, SPACE, DIM)).view_as(x)
        x = x + self.whole(x)
        return x + self.down(F.gelu(self.up(self.norm(x))))


class VideoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(TUBELET, DIM)
        self.position = nn.Parameter(torch.randn(TIME * SPACE, DIM) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)

    def forward(self, tubelets):
        x = self.blocks(self.embed(tubelets) + self.position)
        return self.head(self.norm(x.mean(1)))


def weight_groups(model, decay):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def main():
    torch.manual_seed(0)
    videos = torch.randint(0, 255, (BATCH * 4, TIME * SPACE, TUBELET), dtype=torch.uint8, device=device)
    labels = torch.randint(0, CLASSES, (len(videos),), device=device)
    model = VideoNet().to(device)
    optimizer = torch.optim.AdamW(weight_groups(model, 0.05), lr=1e-4, fused=True)
    loss_sum = torch.zeros((), device=device)
    for step in range(STEPS):
        pick = torch.randint(0, len(videos), (BATCH,), device=device)
        tubelets = videos[pick].to(torch.bfloat16).sub_(127).div_(64)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(tubelets), labels[pick], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.detach()
    print(f"mean loss {loss_sum.item() / STEPS:.4f}")


if __name__ == "__main__":
    main()
