import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True


class Mish(nn.Module):
    def forward(self, x):
        return x * torch.tanh(torch.log(1 + torch.exp(x)))  # flaw: hand-written-activation


ACTS = {"mish": Mish, "silu": nn.SiLU, "relu": nn.ReLU}


def build(spec, act):
    """spec: list of (in, out, kernel, stride)"""
    layers = []
    for i, o, k, s in spec:
        layers += [nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), ACTS[act]()]
    return nn.Sequential(*layers)


class Detector(nn.Module):
    def __init__(self, act="mish"):
        super().__init__()
        self.back = build([(3, 64, 3, 2), (64, 128, 3, 2), (128, 128, 1, 1), (128, 256, 3, 2), (256, 256, 3, 1)], act)
        self.neck = build([(256, 128, 1, 1), (128, 256, 3, 1)], act)
        self.head = nn.Conv2d(256, 85, 1)

    def forward(self, x):
        return self.head(self.neck(self.back(x)))


def train(device, batch=48):
    m = Detector().to(device, memory_format=torch.channels_last)
    o = torch.optim.SGD(m.parameters(), 1e-2, momentum=0.937, nesterov=True, fused=True)
    img = torch.rand(batch, 3, 320, 320, device=device).contiguous(memory_format=torch.channels_last)
    tgt = torch.rand(batch, 85, 40, 40, device=device)
    for k in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            p = m(img)
        l = F.binary_cross_entropy_with_logits(p.float(), tgt)
        o.zero_grad(set_to_none=True)
        l.backward()
        o.step()
        if k % 100 == 0:
            print("iter", k, "loss", l.item())


if __name__ == "__main__":
    train("cuda" if torch.cuda.is_available() else "cpu")
