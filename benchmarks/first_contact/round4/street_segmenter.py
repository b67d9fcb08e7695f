import os
import torch
from torch import nn
import torch.nn.functional as F

# ---- configuration -------------------------------------------------------
config = {
    "num_classes": 16,
    "height": 256,
    "width": 512,
    "batch_size": 12,
    "channels": 64,
    "iterations": 80,
    "learning_rate": 0.01,
}
if os.environ.get("SMALL"):
    config.update(height=32, width=64, batch_size=2, channels=8, iterations=30)

# ---- model ---------------------------------------------------------------
MODULES = {}


def register(fn):
    MODULES[fn.__name__] = fn
    return fn


@register
def conv_bn(cin, cout, stride=1, dilation=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, dilation, dilation, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


@register
class context(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.branches = nn.ModuleList([conv_bn(c, c // 4, dilation=d) for d in (1, 2, 4, 8)])
        self.mix = nn.Sequential(nn.Conv2d(c, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        y = torch.cat([b(x) for b in self.branches], dim=1)
        return F.relu(x + self.mix(y), inplace=True)


class StreetNet(nn.Module):
    def __init__(self, c, classes):
        super().__init__()
        self.stem = MODULES["conv_bn"](3, c, stride=2)
        self.fine = nn.Sequential(conv_bn(c, c), conv_bn(c, c))
        self.coarse = nn.Sequential(conv_bn(c, 4 * c, stride=2), conv_bn(4 * c, 4 * c),
                                    MODULES["context"](4 * c), MODULES["context"](4 * c))
        self.reduce = conv_bn(5 * c, 2 * c)
        self.classify = nn.Conv2d(2 * c, classes, 1)

    def forward(self, x):
        fine = self.fine(self.stem(x))
        coarse = F.interpolate(self.coarse(fine), scale_factor=2, mode="nearest")
        return self.classify(self.reduce(torch.cat([fine, coarse], dim=1)))


# ---- training ------------------------------------------------------------
def main():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = StreetNet(config["channels"], config["num_classes"]).to(device)  # flaw: channels-first-conv
    optimizer = torch.optim.SGD(model.parameters(), lr=config["learning_rate"], momentum=0.9,
                                weight_decay=1e-4, fused=device.type == "cuda")
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, config["iterations"], power=0.9)
    shape = (config["batch_size"] * 4, 3, config["height"], config["width"])
    frames = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    truth = torch.randint(0, config["num_classes"], (shape[0], shape[2] // 2, shape[3] // 2), device=device)

    for iteration in range(config["iterations"]):
        first = (iteration % 4) * config["batch_size"]
        chosen = slice(first, first + config["batch_size"])
        x = frames[chosen].float().div_(255)  # flaw: channels-first-conv
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), truth[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if iteration % 20 == 0:
            print(f"[{iteration}/{config['iterations']}] loss={loss.item():.4f}")


main()
