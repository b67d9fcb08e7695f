# %% [markdown]
# # Next-move model over games in UCI notation
# Games are token sequences (one token a move, 1,968 moves rounded up to 2,048).

# %%
import math
import os

import torch
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
TINY = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
MOVES, PLIES, WIDTH, HEADS, LAYERS = (64, 16, 32, 4, 2) if TINY else (2048, 512, 1024, 16, 8)
GAMES, BATCH, STEPS, REPORT = (128, 8, 40, 10) if TINY else (20000, 64, 2000, 50)

# %% made-up games: each move depends on the previous one, with some noise
gen = torch.Generator(dev).manual_seed(101)
reply = torch.randint(MOVES, (MOVES, 4), device=dev, generator=gen)
games = torch.empty(GAMES, PLIES + 1, dtype=torch.long, device=dev)
games[:, 0] = torch.randint(MOVES, (GAMES,), device=dev, generator=gen)
style = torch.randint(4, (PLIES, GAMES), device=dev, generator=gen)
for ply in range(PLIES):
    games[:, ply + 1] = reply[games[:, ply], style[ply]]

# %% parameters: a flat dictionary
torch.manual_seed(7)


def new(*shape, std=0.02):
    return (torch.randn(*shape, device=dev) * std).requires_grad_()


P = {"moves": new(MOVES, WIDTH), "plies": new(PLIES, WIDTH), "readout": new(MOVES, WIDTH)}
for i in range(LAYERS):
    small = 0.02 / math.sqrt(2 * LAYERS)
    P |= {
        f"{i}.n1": torch.ones(WIDTH, device=dev, requires_grad=True),
        f"{i}.n2": torch.ones(WIDTH, device=dev, requires_grad=True),
        f"{i}.qkv": new(3 * WIDTH, WIDTH),
        f"{i}.proj": new(WIDTH, WIDTH, std=small),
        f"{i}.up": new(4 * WIDTH, WIDTH),
        f"{i}.down": new(WIDTH, 4 * WIDTH, std=small),
    }
P["norm"] = torch.ones(WIDTH, device=dev, requires_grad=True)
print(sum(p.numel() for p in P.values()) // 1000, "thousand parameters")

# %%


def attend(x, i):
    b, t, c = x.shape
    q, k, v = F.linear(x, P[f"{i}.qkv"]).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(y.transpose(1, 2).reshape(b, t, c), P[f"{i}.proj"])


def think(x, i):
    return F.linear(F.gelu(F.linear(x, P[f"{i}.up"])), P[f"{i}.down"])


def logits_of(moves):
    x = F.embedding(moves, P["moves"]) + P["plies"]
    for i in range(LAYERS):
        x = x + attend(F.layer_norm(x, (WIDTH,), P[f"{i}.n1"]), i)
        x = x + think(F.layer_norm(x, (WIDTH,), P[f"{i}.n2"]), i)
    return F.linear(F.layer_norm(x, (WIDTH,), P["norm"]), P["readout"])


# %%
opt = torch.optim.AdamW(
    [
        {"params": [p for p in P.values() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in P.values() if p.ndim == 1], "weight_decay": 0.0},
    ],
    lr=6e-4,
    betas=(0.9, 0.95),
    fused=True,
)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 200))

# %%
running = torch.zeros((), device=dev)
for step in range(1, STEPS + 1):
    batch = games[torch.randint(GAMES, (BATCH,), device=dev, generator=gen)]
    with torch.autocast(dev, dtype=torch.bfloat16):
        logits = logits_of(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
    running += loss.detach()
    if step % REPORT == 0:
        print(f"step {step}  nats a move {running.item() / REPORT:.4f}", flush=True)
        running.zero_()
