"""Autoregressive prior over the codes of a VQ-VAE (14 x 14 codes an image)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Prior(nn.Module):
    def __init__(self, codes, length, d, depth):
        super().__init__()
        self.start = codes
        vocab = (codes + 1 + 63) // 64 * 64
        self.token = nn.Embedding(vocab, d)
        self.place = nn.Parameter(torch.zeros(length, d))
        self.layers = nn.ModuleList([Layer(d, d // 64) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, codes):
        x = self.token(F.pad(codes[:, :-1], (1, 0), value=self.start)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class CodeBatches:
    """Codes were extracted before; they fit on the device."""

    def __init__(self, codes, length, count, batch, device):
        self.data = torch.randint(0, codes, (count, length), device=device)
        self.batch = batch

    def __iter__(self):
        order = torch.randperm(len(self.data), device=self.data.device)
        for part in order.split(self.batch):
            yield self.data[part]


def main():
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    codes, length, d, depth, count, batch = (8192, 196, 512, 6, 128 * 100, 128) if cuda else (30, 16, 64, 1, 8, 2)
    model = Prior(codes, length, d, depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    data = CodeBatches(codes, length, count, batch, device)
    for epoch in range(4 if cuda else 1):
        total = torch.zeros((), device=device)
        for n, x in enumerate(data, 1):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(x)
                loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / n:.4f} nats a code")


if __name__ == "__main__":
    main()
