"""Neural-operator MLP for travel-time tables trained with Muon (Newton-Schulz orthogonalised momentum)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")


def newton_schulz(g, steps=5):
    """Approximate orthogonal factor of every matrix in the stack g."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        poly = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, poly, x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """For square hidden matrices of one size, which are updated as a stack."""

    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            state = self.state[params[0]]
            if "momenta" not in state:
                state["momenta"] = [torch.zeros_like(p) for p in params]
            momenta = state["momenta"]
            torch._foreach_mul_(momenta, group["momentum"])
            torch._foreach_add_(momenta, grads)
            nesterov = torch._foreach_add(grads, momenta, alpha=group["momentum"])
            update = newton_schulz(torch.stack(nesterov))
            torch._foreach_add_(params, list(update.to(params[0].dtype).unbind(0)), alpha=-group["lr"])


class Operator(nn.Module):
    def __init__(self, n_in, width, depth, n_out):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        h = self.inp(x)
        for norm, layer in zip(self.norms, self.hidden):
            h = h + F.gelu(layer(norm(h)))
        return self.out(h)


n_in, width, depth, n_out = (512, 2048, 8, 256) if cuda else (8, 16, 2, 4)
batch, steps = (16384, 200) if cuda else (16, 6)
torch.manual_seed(0)
model = Operator(n_in, width, depth, n_out).to(device)
matrices = [layer.weight for layer in model.hidden]
chosen = {id(p) for p in matrices}
others = [p for p in model.parameters() if id(p) not in chosen]
muon = Muon(matrices, lr=0.01)
adam = torch.optim.AdamW(others, lr=1e-3, fused=cuda)

x_all = torch.randn(8 * batch, n_in, device=device)
teacher = torch.randn(n_in, n_out, device=device) / n_in**0.5
y_all = torch.sin(3 * (x_all @ teacher))

for step in range(steps):
    rows = torch.randint(len(x_all), (batch,), device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        pred = model(x_all[rows])
    loss = F.mse_loss(pred.float(), y_all[rows])
    muon.zero_grad(set_to_none=True)
    adam.zero_grad(set_to_none=True)
    loss.backward()
    muon.step()
    adam.step()
    if step % 40 == 0:
        print(f"step {step:4d}  loss {loss.item():.5f}")
print(f"final {loss.item():.6f}")
