"""Knowledge-graph completion with DistMult and shared negatives."""
import os
import torch
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
hp = dict(
    entities=5_000 if tiny else 2_000_000,
    relations=64 if tiny else 1024,
    dim=32 if tiny else 256,
    batch=128 if tiny else 32768,
    negatives=64 if tiny else 4096,
    steps=20 if tiny else 700,
    lr=0.1,
    temperature=0.2,
)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(0)


def make_triples(n):
    g = torch.Generator(device).manual_seed(5)
    head = torch.randint(hp["entities"], (n,), generator=g, device=device)
    rel = torch.randint(hp["relations"], (n,), generator=g, device=device)
    tail = (head * 31 + rel * 17) % hp["entities"]
    return torch.stack((head, rel, tail))


def init_params():
    scale = hp["dim"] ** -0.5
    ent = torch.randn(hp["entities"], hp["dim"], device=device).mul_(scale).requires_grad_()
    rel = torch.randn(hp["relations"], hp["dim"], device=device).mul_(scale).add_(1.0).requires_grad_()
    return {"ent": ent, "rel": rel}


def rows(table, ids):
    return F.embedding(ids, table, sparse=True)


def score_batch(params, head, rel, tail, noise):
    query = rows(params["ent"], head) * F.embedding(rel, params["rel"]) / hp["temperature"]
    good = rows(params["ent"], tail)
    bad = rows(params["ent"], noise)
    positive = (query * good).sum(-1)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        negative = query @ bad.t()
        return F.softplus(-positive).mean() + F.softplus(negative).mean()


def train():
    params = init_params()
    triples = make_triples(hp["batch"] * 16)
    opt = torch.optim.Adagrad(params.values(), lr=hp["lr"])
    noise_gen = torch.Generator(device).manual_seed(9)
    avg = torch.zeros((), device=device)
    step = 0
    while step < hp["steps"]:
        lo = (step % 16) * hp["batch"]
        head, rel, tail = triples[:, lo:lo + hp["batch"]]
        noise = torch.randint(hp["entities"], (hp["negatives"],), generator=noise_gen, device=device)
        loss = score_batch(params, head, rel, tail, noise)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        avg.lerp_(loss.detach(), 0.05)
        step += 1
    return avg.item(), params


if __name__ == "__main__":
    final, params = train()
    print(f"loss {final:.5f}")
    print(f"norm {params['rel'].detach().norm().item():.4f}")
