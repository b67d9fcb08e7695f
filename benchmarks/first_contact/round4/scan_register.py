"""Regresses the rigid motion between two scans of the same object."""
import collections
import os
import numpy as np
import torch
import torch.nn as nn

small = os.environ.get("SMALL") == "1"
CLOUDS, POINTS, WIDTH, STEPS = (4, 64, 16, 30) if small else (64, 1024, 256, 120)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rng = np.random.default_rng(0)


def rotations(n):
    q = rng.standard_normal((n, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    return np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                     2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                     2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1).reshape(n, 3, 3)


class Scans:
    """Cuts and turns a library of shapes; three page-locked buffers go round."""

    def __init__(self):
        self.library = rng.standard_normal((256, POINTS, 3)).astype(np.float32)
        pin = device.type == "cuda"
        self.ring = [(torch.empty(CLOUDS, POINTS, 6, pin_memory=pin), torch.empty(CLOUDS, 12, pin_memory=pin)) for _ in range(3)]
        self.free = collections.deque([None] * 3)
        self.turn = 0

    def next(self):
        event = self.free.popleft()
        if event is not None:
            event.synchronize()
        cloud, pose = self.ring[self.turn]
        self.turn = (self.turn + 1) % 3
        shape = self.library[rng.integers(0, 256, CLOUDS)]
        r = rotations(CLOUDS).astype(np.float32)
        t = rng.uniform(-0.5, 0.5, (CLOUDS, 1, 3)).astype(np.float32)
        noise = rng.standard_normal(shape.shape, dtype=np.float32) * 0.01
        cloud.numpy()[..., :3] = shape
        cloud.numpy()[..., 3:] = shape @ r.transpose(0, 2, 1) + t + noise
        pose.numpy()[:, :9], pose.numpy()[:, 9:] = r.reshape(-1, 9), t[:, 0]
        out = cloud.to(device, non_blocking=True), pose.to(device, non_blocking=True)
        if device.type == "cuda":
            event = torch.cuda.Event()
            event.record()
        self.free.append(event)
        return out


class PoseNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        def mlp(*d):
            return nn.Sequential(*[m for a, b in zip(d, d[1:]) for m in (nn.Linear(a, b), nn.LayerNorm(b), nn.ReLU(inplace=True))])
        self.lift = nn.Linear(8, w)
        self.each = mlp(w, w, 4 * w, 4 * w, 8 * w)
        self.after = mlp(8 * w, 8 * w, 4 * w)
        self.pose = nn.Linear(4 * w, 16)

    def forward(self, x):
        x = nn.functional.pad(x, (0, 2))
        return self.pose(self.after(self.each(self.lift(x)).amax(1)))[:, :12]


def main():
    scans, net = Scans(), PoseNet(WIDTH).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=device.type == "cuda")
    curve = []
    for step in range(STEPS):
        cloud, pose = scans.next()
        with torch.autocast(device.type, torch.bfloat16):
            guess = net(cloud)
        loss = nn.functional.smooth_l1_loss(guess.float(), pose)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(loss.item())  # flaw: sync-in-step
    print("first", np.mean(curve[:10]), "last", np.mean(curve[-10:]))


if __name__ == "__main__":
    main()
