"""Galaxy morphology with a vision transformer; everything lives on the device."""
import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

DIM, DEPTH, HEADS = (768, 10, 12) if cuda else (32, 2, 2)
SIDE, PATCH, BATCH, STEPS = (224, 16, 96, 120) if cuda else (32, 16, 2, 3)
ANSWERS = 40
TOKENS = (SIDE // PATCH) ** 2


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def attend(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, DIM))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GalaxyViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, DIM)
        self.position = nn.Parameter(0.02 * torch.randn(TOKENS, DIM))
        self.encoders = nn.Sequential(*[Encoder() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, ANSWERS)

    def forward(self, x):
        patches = F.pixel_unshuffle(x, PATCH).flatten(2).transpose(1, 2)
        h = self.encoders(self.embed(patches) + self.position)
        return self.head(self.norm(h.mean(1)))


model = GalaxyViT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=cuda)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-4, total_steps=STEPS)

images = torch.randint(0, 256, (1024 if cuda else 8, 3, SIDE, SIDE), dtype=torch.uint8, device=device)
votes = torch.rand(len(images), ANSWERS, device=device).softmax(1)

mean_loss = torch.zeros((), device=device)
for step in range(STEPS):
    rows = torch.randint(len(images), (BATCH,), device=device)
    x = images[rows].to(torch.bfloat16).div_(127.5).sub_(1)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), votes[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    mean_loss.lerp_(loss.detach(), 0.05)
    if step % 40 == 39:
        print(f"step {step + 1}: {mean_loss.item():.4f}")
