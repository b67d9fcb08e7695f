"""A student learns the distribution of a frozen teacher."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


def tower(d, n, vocab=2048):
    layers = [nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(n)]
    return nn.ModuleDict({"emb": nn.Embedding(vocab, d), "layers": nn.ModuleList(layers), "head": nn.Linear(d, vocab)})


def apply(net, ids):
    x = net["emb"](ids)
    for layer in net["layers"]:
        x = x + layer(x)
    return net["head"](x)


teacher = tower(1536, 4).to(device, torch.bfloat16).requires_grad_(False).eval()
student = tower(768, 4).to(device)
opt = torch.optim.AdamW(student.parameters(), lr=3e-4, fused=True)
ids = torch.randint(0, 2048, (1024, 256), device=device)
batch = 64

for step in range(400):
    rows = ids[torch.randint(0, 1024, (batch,), device=device)]
    with torch.no_grad():
        target = F.log_softmax(apply(teacher, rows), -1)
    with torch.autocast(device, dtype=torch.bfloat16):
        guess = F.log_softmax(apply(student, rows), -1, dtype=torch.float32)
    loss = F.kl_div(guess.flatten(0, 1), target.float().flatten(0, 1), reduction="batchmean", log_target=True)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
