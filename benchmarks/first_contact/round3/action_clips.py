import os
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import data

S = os.environ.get("SMALL") == "1"
FRAMES, SIDE, BATCH, STEPS, W = (4, 16, 2, 30, 4) if S else (16, 112, 16, 80, 48)


class Clips(data.Dataset):
    """Clips cut from long recordings, with shaken crops and a change of brightness."""

    def __init__(self):
        self.recordings = [np.random.randint(0, 255, (64, SIDE + 16, SIDE + 16, 3), np.uint8) for _ in range(8)]

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, k):
        rec = self.recordings[k % 8]
        t = np.random.randint(0, 64 - FRAMES)
        dy, dx = np.random.randint(0, 16, 2)
        clip = rec[t : t + FRAMES, dy : dy + SIDE, dx : dx + SIDE].astype(np.float32) / 255
        clip = np.clip(clip * np.random.uniform(0.7, 1.3), 0, 1) ** np.float32(np.random.uniform(0.8, 1.25))
        clip = clip - clip.mean((0, 1, 2), keepdims=True)
        return torch.from_numpy(clip.transpose(3, 0, 1, 2).copy()), k % 51


class R3(nn.Module):
    def __init__(self, w):
        super().__init__()
        def conv(i, o, s):
            return nn.Sequential(nn.Conv3d(i, o, 3, s, 1, bias=False), nn.BatchNorm3d(o), nn.ReLU(True))
        self.trunk = nn.Sequential(conv(3, w, (1, 2, 2)), conv(w, w, 1), conv(w, 2 * w, 2), conv(2 * w, 4 * w, 2))
        self.fc = nn.Linear(4 * w, 51)

    def forward(self, x):
        return self.fc(self.trunk(x).mean((2, 3, 4)))


def main():
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    loader = data.DataLoader(Clips(), BATCH, shuffle=True, num_workers=1, pin_memory=True, persistent_workers=True)  # flaw: too-few-loader-workers
    net = R3(W).to(dev, memory_format=torch.channels_last_3d)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    seen = torch.zeros((), device=dev)
    for clip, action in loader:
        clip = clip.to(dev, non_blocking=True).contiguous(memory_format=torch.channels_last_3d)
        action = action.to(dev, non_blocking=True)
        with torch.autocast(dev, torch.bfloat16):
            loss = F.cross_entropy(net(clip), action)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += loss.detach()
    print("mean", seen.item() / len(loader))


if __name__ == "__main__":
    main()
