"""A small DETR: convolutional stem, transformer encoder over the feature map, decoder with object queries."""

import torch
import torch.nn as nn
import torch.nn.functional as F

USE_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if USE_GPU else "cpu")


class Attention(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.nhead, self.d_head = nhead, d_model // nhead
        self.q_proj = nn.Linear(d_model, d_model)
        self.kv_proj = nn.Linear(d_model, 2 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, memory):
        b, n, d = query.shape
        q = self.q_proj(query).view(b, n, self.nhead, self.d_head).transpose(1, 2)
        k, v = self.kv_proj(memory).view(b, -1, 2, self.nhead, self.d_head).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.out_proj(out.transpose(1, 2).reshape(b, n, d))


class FeedForward(nn.Sequential):
    def __init__(self, d_model, hidden):
        super().__init__(nn.Linear(d_model, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, d_model))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, hidden):
        super().__init__()
        self.attention, self.ff = Attention(d_model, nhead), FeedForward(d_model, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y)
        return x + self.ff(self.norm2(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, nhead, hidden):
        super().__init__()
        self.self_attention = Attention(d_model, nhead)
        self.cross_attention = Attention(d_model, nhead)
        self.ff = FeedForward(d_model, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory):
        y = self.norms[0](x)
        x = x + self.self_attention(y, y)
        x = x + self.cross_attention(self.norms[1](x), memory)
        return x + self.ff(self.norms[2](x))


class Detr(nn.Module):
    def __init__(self, d_model=256, nhead=8, layers=4, queries=100, classes=91, cells=1600):
        super().__init__()
        self.stem = nn.Conv2d(3, d_model, 16, 16)
        self.position = nn.Parameter(torch.randn(cells, d_model) * 0.02)
        self.queries = nn.Parameter(torch.randn(queries, d_model))
        self.encoder = nn.ModuleList(EncoderLayer(d_model, nhead, 8 * d_model) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, nhead, 8 * d_model) for _ in range(layers))
        self.class_head = nn.Linear(d_model, classes + 1)
        self.box_head = nn.Sequential(nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, 4))

    def forward(self, images):
        memory = self.stem(images).flatten(2).transpose(1, 2) + self.position
        for layer in self.encoder:
            memory = layer(memory)
        x = self.queries.expand(len(images), -1, -1)
        for layer in self.decoder:
            x = layer(x, memory)
        return self.class_head(x), self.box_head(x).sigmoid()


def detection_loss(logits, boxes, target_class, target_box):
    """Targets are assigned to queries beforehand (fixed slots), class 0 is 'no object'."""
    present = (target_class > 0).unsqueeze(-1)
    class_loss = F.cross_entropy(logits.flatten(0, 1).float(), target_class.flatten())
    box_loss = ((boxes.float() - target_box).abs() * present).sum() / present.sum().clamp_min(1)
    return class_loss + 5 * box_loss


def train(size, batch, steps, pool, **kw):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    model = Detr(cells=(size // 16) ** 2, **kw).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=USE_GPU)
    images = torch.randint(0, 256, (pool, 3, size, size), dtype=torch.uint8, device=DEVICE)
    target_class = torch.randint(0, 92, (pool, model.queries.shape[0]), device=DEVICE)
    target_box = torch.rand(pool, model.queries.shape[0], 4, device=DEVICE)
    losses = []
    for step in range(steps):
        rows = torch.randperm(pool, device=DEVICE)[:batch]
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits, boxes = model(images[rows].float() / 255)
        loss = detection_loss(logits, boxes, target_class[rows], target_box[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1, foreach=True)
        optimizer.step()
        losses.append(loss.detach())
    print("loss", torch.stack(losses)[-20:].mean().item())


if __name__ == "__main__":
    if USE_GPU:
        train(size=640, batch=16, steps=100, pool=128)
    else:
        train(size=64, batch=2, steps=2, pool=4, d_model=32, nhead=4, layers=1, queries=10)
