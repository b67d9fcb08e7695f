import torch
from torch import nn


class Recorder:
    """Collects the mean activations of named layers through hooks."""

    def __init__(self, model, wanted):
        self.kept = {}
        for name, module in model.named_modules():
            if isinstance(module, wanted):
                module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def keep(module, args, output):
            self.kept.setdefault(name, []).append(output.detach().mean(1))  # flaw: memory-growth
        return keep


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(nn.Linear(64, 1024), *[Block(1024) for _ in range(6)], nn.Linear(1024, 64)).to(device)
    recorder = Recorder(net, nn.LayerNorm)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    batch = 384
    x = torch.randn(batch, 32, 64, device=device)
    for step in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(net(x).float(), x)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item(), len(recorder.kept))


if __name__ == "__main__":
    main()
