"""Self-distillation without labels: a student ViT follows a moving average of itself."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(dim), Attention(dim, heads)
        self.n2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, patch, side, prototypes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.position = nn.Parameter(0.02 * torch.randn((side // patch) ** 2, dim))
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, prototypes, bias=False)

    def forward(self, x):
        p = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)
        h = self.layers(self.embed(p) + self.position)
        return self.head(self.norm(h.mean(1)))


class Distiller:
    def __init__(self, student, lr, steps):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False)
        fused = next(student.parameters()).is_cuda
        self.optimizer = torch.optim.AdamW(student.parameters(), lr, fused=fused)
        self.center = torch.zeros(student.head.out_features, device=student.position.device)
        self.steps = steps
        self.slow = list(self.teacher.parameters())
        self.fast = list(student.parameters())

    def clip_gradients(self, limit):
        """Clips each tensor on its own, as DINO does."""
        gradients = [p.grad for p in self.fast]
        norms = torch.stack(torch._foreach_norm(gradients))
        torch._foreach_mul_(gradients, list((limit / (norms + 1e-6)).clamp(max=1.0).unbind()))

    @torch.no_grad()
    def update_teacher(self, momentum):
        torch._foreach_lerp_(self.slow, self.fast, 1 - momentum)

    def step(self, index, one, two):
        device = one.device.type
        with torch.autocast(device, dtype=torch.bfloat16):
            with torch.no_grad():
                logits = self.teacher(one).float()
                target = F.softmax((logits - self.center) / 0.04, -1)
                self.center.lerp_(logits.mean(0), 0.1)
            loss = F.cross_entropy(self.student(two).float() / 0.1, target)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.clip_gradients(3.0)
        self.optimizer.step()
        self.update_teacher(1 - 0.004 * (1 + math.cos(math.pi * index / self.steps)) / 2)
        return loss.detach()


if __name__ == "__main__":
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    dim, depth, heads, batch, side, steps = (384, 24, 6, 64, 96, 150) if cuda else (32, 2, 2, 2, 32, 3)
    student = ViT(dim, depth, heads, 8, side, 4096 if cuda else 64).to(device)
    distiller = Distiller(student, 5e-4, steps)
    photos = torch.randn(8 * batch, 3, side, side, device=device)
    for index in range(steps):
        pick = torch.randint(len(photos), (batch,), device=device)
        one = photos[pick]
        two = one.flip(-1) + 0.1 * torch.randn_like(one)
        loss = distiller.step(index, one, two)
        if index % 50 == 0:
            print(f"{index:4d} {loss.item():.4f}")
