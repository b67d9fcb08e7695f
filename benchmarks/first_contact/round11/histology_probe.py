"""Linear evaluation of a pretrained backbone on histology tiles (the backbone stays as it is)."""
import torch
from torch import nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")

cfg = {
    "width": 64 if cuda else 8,
    "stages": 3 if cuda else 2,
    "blocks": 2 if cuda else 1,
    "tile": 192 if cuda else 16,
    "batch": 128 if cuda else 4,
    "classes": 16,
    "steps": 130 if cuda else 4,
    "lr": 0.1,
}


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(h)).add_(self.skip(x)), inplace=True)


class Backbone(nn.Module):
    def __init__(self, width, stages, blocks):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(4, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        layers, channels = [], width
        for s in range(stages):
            out = width * 2 ** s
            for b in range(blocks):
                layers.append(Residual(channels, out, 2 if b == 0 and s > 0 else 1))
                channels = out
        self.body = nn.Sequential(*layers)
        self.channels = channels

    def forward(self, x):
        return self.body(self.stem(x)).mean((2, 3))


def load_pretrained(backbone, seed=42):
    """Stands in for a checkpoint: the same weights in every run."""
    gen = torch.Generator().manual_seed(seed)
    state = backbone.state_dict()
    for key, value in state.items():
        if key.endswith("weight") and value.dim() == 4:
            fan = value[0].numel()
            state[key] = torch.randn(value.shape, generator=gen) * (2.0 / fan) ** 0.5
    backbone.load_state_dict(state)
    return backbone


class Probe(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone.eval()  # flaw: none-yet(frozen-backbone-gradients)
        self.head = nn.Linear(backbone.channels, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()  # batch statistics stay those of the pretraining
        return self

    def forward(self, tiles):
        features = self.backbone(tiles)  # flaw: none-yet(frozen-backbone-gradients)
        return self.head(features)


def tiles(step, pool=4):
    """Random stain patterns whose scale depends on the class."""
    gen = torch.Generator(device).manual_seed(step % pool)
    label = torch.randint(cfg["classes"], (cfg["batch"],), device=device, generator=gen)
    image = torch.randn(cfg["batch"], 4, cfg["tile"], cfg["tile"], device=device, generator=gen)
    scale = 0.5 + label.float()[:, None, None, None] / cfg["classes"]
    return (image * scale).to(torch.bfloat16, memory_format=torch.channels_last), label


def main():
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    backbone = load_pretrained(Backbone(cfg["width"], cfg["stages"], cfg["blocks"]))
    model = Probe(backbone, cfg["classes"]).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=cfg["lr"], momentum=0.9, fused=True)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg["steps"])
    pool = [tiles(i) for i in range(4)]
    model.train()
    history = []
    for step in range(cfg["steps"]):
        image, label = pool[step % 4]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cosine.step()
        history.append(loss.detach())
    first, last = history[0].item(), torch.stack(history[-4:]).mean().item()
    print(f"probe loss {first:.4f} -> {last:.4f}")
    print(f"head norm {model.head.weight.norm().item():.4f}")


if __name__ == "__main__":
    main()
