"""Distil hidden states of a larger encoder into a smaller one."""
import os
import torch
import torch.nn.functional as F
from torch import nn

S = os.environ.get("SMALL") == "1"
VOCAB, LENGTH, BATCH, STEPS = (100, 16, 2, 30) if S else (8192, 256, 48, 80)
BIG, LITTLE = ((32, 2, 2), (16, 2, 1)) if S else ((1024, 16, 8), (512, 8, 4))


def encoder(width, heads, depth):
    body = nn.ModuleList(
        nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(depth)
    )
    return nn.ModuleDict({"emb": nn.Embedding(VOCAB, width), "body": body, "norm": nn.LayerNorm(width)})


def encode(net, ids):
    x = net["emb"](ids)
    for layer in net["body"]:
        x = layer(x)
    return net["norm"](x)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(50)
    teacher = encoder(*BIG).to(device, torch.bfloat16).eval().requires_grad_(False)
    student, lift = encoder(*LITTLE).to(device), nn.Linear(LITTLE[0], BIG[0]).to(device)
    optimizer = torch.optim.AdamW([*student.parameters(), *lift.parameters()], lr=3e-4, fused=True)
    tickets = torch.randint(VOCAB, (12, BATCH, LENGTH), device=device)
    for step in range(STEPS):
        ids = tickets[step % 12]
        with torch.no_grad():
            wanted = encode(teacher, ids)
        with torch.autocast(device, dtype=torch.bfloat16):
            got = lift(encode(student, ids))
        loss = F.mse_loss(got.float(), wanted.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("mse", loss.item())


if __name__ == "__main__":
    main()
