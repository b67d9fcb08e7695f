# Piano-roll event model. usage: python piano_events.py [--iters N]
import argparse, os
import torch, torch.nn as nn, torch.nn.functional as F

small = os.getenv("SMALL") == "1"
ap = argparse.ArgumentParser()
ap.add_argument("--iters", type=int, default=30 if small else 80)
ap.add_argument("--events", type=int, default=128 if small else 512)
ap.add_argument("--dim", type=int, default=32 if small else 768)
ap.add_argument("--layers", type=int, default=2 if small else 6)
ap.add_argument("--nhead", type=int, default=4 if small else 12)
ap.add_argument("--seqlen", type=int, default=48 if small else 768)
ap.add_argument("--bs", type=int, default=2 if small else 12)
args = ap.parse_args()
dev = "cuda" if torch.cuda.is_available() else "cpu"


def attend(q, k, v, p, training):
    t = torch.arange(q.shape[-2], device=q.device)
    att = torch.matmul(q, k.transpose(2, 3)).mul(q.shape[-1] ** -0.5)  # flaw: hand-written-attention
    att = att + (t[None, :] > t[:, None]).to(att.dtype) * -1e4  # flaw: hand-written-attention
    att = F.dropout(torch.softmax(att, -1), p, training)  # flaw: hand-written-attention
    return att.matmul(v)  # flaw: hand-written-attention


class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = h
        s.ln1, s.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        s.qkv, s.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        s.up, s.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(s, x):
        B, T, D = x.shape
        q, k, v = s.qkv(s.ln1(x)).view(B, T, 3, s.h, D // s.h).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, 0.1, s.training).transpose(1, 2).reshape(B, T, D)
        x = x + s.o(y)
        return x + s.down(F.gelu(s.up(s.ln2(x))))


torch.manual_seed(0)
emb = nn.Embedding(args.events, args.dim)
trunk = nn.Sequential(*[Block(args.dim, args.nhead) for _ in range(args.layers)], nn.LayerNorm(args.dim))
out = nn.Linear(args.dim, args.events)
net = nn.Sequential(emb, trunk, out).to(dev)
opt = torch.optim.AdamW(net.parameters(), 2e-4, betas=(0.9, 0.95), fused=True)
songs = torch.randint(args.events, (256, args.seqlen + 1), device=dev)

running = torch.zeros((), device=dev)
for it in range(args.iters):
    rows = torch.randint(256, (args.bs,), device=dev)
    ev = songs[rows]
    with torch.autocast(dev, torch.bfloat16):
        logits = net(ev[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), ev[:, 1:])
    loss.backward()
    opt.step()
    opt.zero_grad()
    running += loss.detach()
print("mean loss", (running / args.iters).item())
