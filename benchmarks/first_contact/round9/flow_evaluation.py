"""End-point error of a recurrent optical-flow network (all-pairs correlation, GRU updates) on a validation set."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
H, W, PAIRS, BATCH, ITERS = (256, 320, 1024, 2, 16) if DEV.type == "cuda" else (64, 64, 3, 1, 2)
HID, FEAT = (96, 128) if DEV.type == "cuda" else (16, 16)
LEVELS, RADIUS = 3, 3


def conv(cin, cout, k, stride=1):
    return nn.Conv2d(cin, cout, k, stride, k // 2)


class Encoder(nn.Sequential):
    def __init__(self, out):
        layers = []
        for cin, cout in [(3, 32), (32, 64), (64, 96)]:
            layers += [conv(cin, cout, 3, 2), nn.ReLU(inplace=True), conv(cout, cout, 3), nn.ReLU(inplace=True)]
        super().__init__(*layers, conv(96, out, 1))


class Correlation:
    def __init__(self, f1, f2):
        b, c, h, w = f1.shape
        volume = torch.einsum("bchw,bcuv->bhwuv", f1.float(), f2.float()) / c**0.5
        self.pyramid = [volume.reshape(b * h * w, 1, h, w)]
        for _ in range(LEVELS - 1):
            self.pyramid.append(F.avg_pool2d(self.pyramid[-1], 2))
        d = torch.arange(-RADIUS, RADIUS + 1, device=f1.device, dtype=torch.float32)
        self.window = torch.stack(torch.meshgrid(d, d, indexing="xy"), -1)[None]

    def lookup(self, coords):
        b, _, h, w = coords.shape
        centre = coords.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2)
        found = []
        for level, volume in enumerate(self.pyramid):
            x, y = (centre / 2**level + self.window).unbind(-1)
            grid = torch.stack([2 * x / (volume.shape[-1] - 1) - 1, 2 * y / (volume.shape[-2] - 1) - 1], -1)
            found.append(F.grid_sample(volume, grid, align_corners=True).view(b, h, w, -1))
        return torch.cat(found, -1).permute(0, 3, 1, 2)


class Update(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        taps = LEVELS * (2 * RADIUS + 1) ** 2
        self.corr = nn.Sequential(conv(taps, 128, 1), nn.ReLU(inplace=True))
        self.flow = nn.Sequential(conv(2, 32, 7), nn.ReLU(inplace=True))
        self.mix = nn.Sequential(conv(160, hidden - 2, 3), nn.ReLU(inplace=True))
        self.gates = conv(3 * hidden, 2 * hidden, 3)
        self.candidate = conv(3 * hidden, hidden, 3)
        self.head = nn.Sequential(conv(hidden, 128, 3), nn.ReLU(inplace=True), conv(128, 2, 3))

    def forward(self, state, context, corr, flow):
        motion = self.mix(torch.cat([self.corr(corr), self.flow(flow)], 1))
        x = torch.cat([context, motion, flow], 1)
        z, r = self.gates(torch.cat([state, x], 1)).sigmoid().chunk(2, 1)
        state = torch.lerp(state, self.candidate(torch.cat([r * state, x], 1)).tanh(), z)
        return state, self.head(state)


class FlowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.context = Encoder(FEAT), Encoder(2 * HID)
        self.update = Update(HID)

    def forward(self, first, second):
        f1, f2 = self.features(torch.cat([first, second])).chunk(2)
        correlation = Correlation(f1, f2)
        state, context = self.context(first).chunk(2, 1)
        state, context = state.tanh(), context.relu()
        b, _, h, w = f1.shape
        ys, xs = torch.meshgrid(torch.arange(h, device=DEV), torch.arange(w, device=DEV), indexing="ij")
        start = torch.stack([xs, ys]).float().expand(b, -1, -1, -1)
        flow = torch.zeros_like(start)
        for _ in range(ITERS):
            corr = correlation.lookup(start + flow)
            state, delta = self.update(state, context, corr.to(f1.dtype), flow.to(f1.dtype))
            flow = flow + delta.float()
        return 8 * F.interpolate(flow, scale_factor=8.0, mode="bilinear", align_corners=True)


def validate(model, frames, flows):  # flaw: grad-in-eval
    errors = []
    for i in range(0, len(flows), BATCH):
        pair = frames[i : i + BATCH].to(torch.bfloat16).div(127.5).sub(1)
        first, second = (f.contiguous(memory_format=torch.channels_last) for f in pair.unbind(1))
        flow = model(first, second)  # flaw: grad-in-eval|launch-bound
        errors.append((flow - flows[i : i + BATCH]).norm(dim=1).flatten(1).mean(1).detach())
    return torch.cat(errors)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = FlowNet().to(DEV, torch.bfloat16, memory_format=torch.channels_last).eval()
    frames = torch.randint(0, 256, (PAIRS, 2, 3, H, W), dtype=torch.uint8, device=DEV)
    flows = torch.randn(PAIRS, 2, H, W, device=DEV)
    for name in ("clean", "final"):
        errors = validate(model, frames, flows)
        print(f"{name}: EPE {errors.mean().item():.3f}, worst {errors.max().item():.3f}")
