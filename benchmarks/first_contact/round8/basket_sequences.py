"""Next-basket recommendation: a SASRec-like encoder with a softmax over the whole catalogue."""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_float32_matmul_precision("high")
DEV = "cuda" if torch.cuda.is_available() else "cpu"
ITEMS, DIM, LAYERS, HEADS, LENGTH, BATCH, STEPS = 60032, 256, 4, 4, 64, 160, 150
if DEV == "cpu":
    ITEMS, DIM, LAYERS, HEADS, LENGTH, BATCH, STEPS = 500, 32, 2, 2, 12, 8, 20


class SequenceEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        self.order = nn.Embedding(LENGTH, DIM)
        self.attn_norm = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(LAYERS))
        self.qkv = nn.ModuleList(nn.Linear(DIM, 3 * DIM) for _ in range(LAYERS))
        self.proj = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(LAYERS))
        self.ffn_norm = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(LAYERS))
        self.ffn = nn.ModuleList(
            nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.ReLU(), nn.Linear(4 * DIM, DIM)) for _ in range(LAYERS)
        )
        self.out_norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.items.weight, std=0.02)

    def forward(self, history):
        b, t = history.shape
        x = self.items(history) + self.order.weight[:t]
        for i in range(LAYERS):
            q, k, v = self.qkv[i](self.attn_norm[i](x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj[i](a.transpose(1, 2).reshape(b, t, DIM))
            x = x + self.ffn[i](self.ffn_norm[i](x))
        return F.linear(self.out_norm(x), self.items.weight)


def softmax_loss(scores, target):
    scores = scores.float()
    scores = scores - scores.max(dim=-1, keepdim=True).values  # flaw: hand-written-loss
    log_norm = scores.exp().sum(dim=-1, keepdim=True).log()  # flaw: hand-written-loss
    log_prob = scores - log_norm  # flaw: hand-written-loss
    return -log_prob.gather(-1, target.unsqueeze(-1)).mean()  # flaw: hand-written-loss


def sample_histories(count, generator):
    start = torch.randint(ITEMS, (count, 1), generator=generator, device=DEV)
    hops = torch.randint(1, 20, (count, LENGTH), generator=generator, device=DEV)
    return (start + hops.cumsum(dim=1)) % ITEMS


def main():
    torch.manual_seed(5)
    generator = torch.Generator(DEV).manual_seed(5)
    users = sample_histories(BATCH * 64, generator)
    model = SequenceEncoder().to(DEV)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=DEV == "cuda")

    running = torch.zeros((), device=DEV)
    for step in range(1, STEPS + 1):
        rows = torch.randint(len(users), (BATCH,), generator=generator, device=DEV)
        history = users[rows]
        with torch.autocast(DEV, dtype=torch.bfloat16, enabled=DEV == "cuda"):
            scores = model(history[:, :-1])
            loss = softmax_loss(scores, history[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 50 == 0:
            print(f"step {step}: mean loss {running.item() / 50:.4f}")
            running.zero_()
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
