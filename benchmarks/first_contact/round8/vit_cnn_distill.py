"""Distil a vision transformer into a convolutional student."""

import torch
import torch.nn.functional as F
from torch import nn


class Mixer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Teacher(nn.Module):
    def __init__(self, side, patch, dim, depth, classes):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.Sequential(*[Mixer(dim, dim // 64) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.blocks(x).mean(dim=1)))


class Bottleneck(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        mid = cout // 4
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout),
        )  # fmt: skip
        self.skip = nn.Identity()
        if stride > 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


def student(width, depths, classes):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    cin = width
    for i, depth in enumerate(depths):
        cout = 4 * width * 2**i
        for j in range(depth):
            layers.append(Bottleneck(cin, cout, 2 if i and not j else 1))
            cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, classes))


def distil_loss(student_logits, teacher_logits, labels, t=2.0, alpha=0.7):
    soft = F.kl_div(
        F.log_softmax(student_logits.float() / t, dim=1),
        F.log_softmax(teacher_logits.float() / t, dim=1),
        reduction="batchmean",
        log_target=True,
    )
    return alpha * t * t * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    side, batch, steps, classes = (224, 128, 80, 1000) if gpu else (32, 2, 3, 10)
    teacher = Teacher(side, 16, 768, 12, classes) if gpu else Teacher(side, 16, 64, 1, classes)
    teacher = teacher.to(device, torch.bfloat16).eval().requires_grad_(False)
    net = student(64, (3, 4, 6, 3), classes) if gpu else student(4, (1, 1), classes)
    net = net.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True, fused=True)
    images = torch.randint(0, 256, (8 * batch, 3, side, side), dtype=torch.uint8, device=device)
    labels = torch.randint(0, classes, (8 * batch,), device=device)
    for step in range(steps):
        pick = torch.randint(0, len(images), (batch,), device=device)
        x = images[pick].to(torch.bfloat16, memory_format=torch.channels_last).sub_(120).div_(60)
        with torch.no_grad():
            goal = teacher(x)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = net(x)
        loss = distil_loss(logits, goal, labels[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
