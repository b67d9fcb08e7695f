"""An MLP mixer in a functional style: parameters in a dict, functions for the layers."""
import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
TOKENS, DIM, DEPTH, BATCH = 256, 768, 6, 96


def init(seed=0):
    g = torch.Generator().manual_seed(seed)

    def w(*shape):
        return (torch.randn(*shape, generator=g) * shape[-1] ** -0.5).to(device).requires_grad_()

    def ones(n):
        return torch.ones(n, device=device, requires_grad=True)

    def zeros(n):
        return torch.zeros(n, device=device, requires_grad=True)

    return [
        {
            "ln1": (ones(DIM), zeros(DIM)),
            "ln2": (ones(DIM), zeros(DIM)),
            "tok": (w(2 * TOKENS, TOKENS), w(TOKENS, 2 * TOKENS)),
            "chn": (w(3 * DIM, DIM), w(DIM, 3 * DIM)),
        }
        for _ in range(DEPTH)
    ]


def standardise(x, gain, shift, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)  # flaw: hand-written-norm
    spread = (centred * centred).mean(-1, keepdim=True)  # flaw: hand-written-norm
    return centred / (spread + eps).sqrt() * gain + shift  # flaw: hand-written-norm


def mlp(x, up, down):
    return F.linear(F.gelu(F.linear(x, up)), down)


def apply(params, x):
    for p in params:
        x = x + mlp(standardise(x, *p["ln1"]).mT, *p["tok"]).mT
        x = x + mlp(standardise(x, *p["ln2"]), *p["chn"])
    return x


def main():
    params = init()
    leaves = [t for layer in params for pair in layer.values() for t in pair]
    adam = torch.optim.Adam(leaves, lr=1e-4, fused=True)
    x = torch.randn(BATCH, TOKENS, DIM, device=device)
    target = torch.randn(BATCH, TOKENS, DIM, device=device)
    for _ in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            out = apply(params, x)
        loss = F.mse_loss(out.float(), target)
        grads = torch.autograd.grad(loss, leaves)
        for leaf, grad in zip(leaves, grads):
            leaf.grad = grad
        adam.step()
    print(loss.item())


main()
