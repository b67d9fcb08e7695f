"""Surface-defect classification: bottleneck units of 1x1 and 3x3 convolutions, trained in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIGS = {
    "full": dict(batch=128, side=112, width=64, units=3, classes=16, steps=120, lr=0.05),
    "tiny": dict(batch=4, side=16, width=8, units=1, classes=4, steps=3, lr=0.05),
}
REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


class ConvNormAct(nn.Module):
    def __init__(self, cin, cout, kernel, stride=1, act=True):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2)  # flaw: conv-bias-before-norm
        self.norm = nn.BatchNorm2d(cout)
        self.act = nn.ReLU(inplace=True) if act else nn.Identity()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


@register("bottleneck")
class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.reduce = ConvNormAct(width, width, 1)
        self.space = ConvNormAct(width, width, 3)
        self.expand = ConvNormAct(width, width, 1, act=False)

    def forward(self, x):
        return F.relu(self.expand(self.space(self.reduce(x))).add_(x), inplace=True)


@register("pointwise")
class Pointwise(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Sequential(ConvNormAct(width, width, 1), ConvNormAct(width, width, 1, act=False))

    def forward(self, x):
        return F.relu(self.mix(x).add_(x), inplace=True)


class DefectNet(nn.Module):
    def __init__(self, width, units, classes, kinds=("bottleneck", "pointwise")):
        super().__init__()
        self.stem = ConvNormAct(3, width, 3, stride=2)
        body = []
        for _ in range(units):
            body += [REGISTRY[kind](width) for kind in kinds]
        self.body = nn.Sequential(*body)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def initialise(model, seed):
    gen = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            fan_in = module.weight[0].numel()
            with torch.no_grad():
                module.weight.copy_(torch.randn(module.weight.shape, generator=gen) * (2 / fan_in) ** 0.5)
                if module.bias is not None:
                    module.bias.zero_()
    return model


class ImagePool:
    """Images with bright scratches; the class is the direction of the scratch."""

    def __init__(self, cfg, device):
        gen = torch.Generator(device).manual_seed(3)
        side = 2 * cfg["side"]
        n = 4 * cfg["batch"]
        self.label = torch.randint(cfg["classes"], (n,), device=device, generator=gen)
        axis = torch.linspace(-1, 1, side, device=device)
        angle = self.label * (torch.pi / cfg["classes"])
        cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
        ray = axis[None, :, None] * cos + axis[None, None, :] * sin
        noise = torch.randn(n, 3, side, side, device=device, generator=gen)
        image = torch.exp(-(ray * 20) ** 2)[:, None] + 0.3 * noise
        self.image = image.to(torch.bfloat16, memory_format=torch.channels_last)
        self.batch = cfg["batch"]

    def get(self, step):
        part = slice((step % 4) * self.batch, (step % 4 + 1) * self.batch)
        return self.image[part], self.label[part]


def train(cfg, device):
    torch.backends.cudnn.benchmark = True
    model = initialise(DefectNet(cfg["width"], cfg["units"], cfg["classes"]), seed=0)
    model = model.to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9, weight_decay=1e-4, fused=True)
    pool = ImagePool(cfg, device)
    trace = torch.zeros(cfg["steps"], device=device)
    for step in range(cfg["steps"]):
        image, label = pool.get(step)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(image), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        trace[step] = loss.detach()
    return trace.tolist()


if __name__ == "__main__":
    gpu = torch.cuda.is_available()
    losses = train(CONFIGS["full" if gpu else "tiny"], "cuda" if gpu else "cpu")
    print(" ".join(f"{v:.3f}" for v in losses[:3]), "...", f"{losses[-1]:.3f}")
