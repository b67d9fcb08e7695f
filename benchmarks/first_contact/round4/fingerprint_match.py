import os, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

TINY = 'SMALL' in os.environ
B, S, W = (4, 24, 8) if TINY else (96, 128, 64)
PER_EPOCH, EPOCHS, WORKERS = (15, 2, 1) if TINY else (16, 12, 8)
device = 'cuda' if torch.cuda.is_available() else 'cpu'


class Prints(Dataset):
    def __init__(self, fingers=600, impressions=4):
        g = torch.Generator().manual_seed(0)
        self.base = torch.randint(0, 255, (fingers if not TINY else 20, impressions, S, S), generator=g, dtype=torch.uint8)

    def __len__(self):
        return PER_EPOCH * B

    def __getitem__(self, i):
        f = i % len(self.base)
        a, b = torch.randint(self.base.shape[1], (2,)).tolist()
        return self.base[f, a], self.base[f, b], f


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        def stage(i, o, s):
            return [nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
        self.net = nn.Sequential(*stage(1, W, 1), *stage(W, W, 1), *stage(W, 2*W, 2), *stage(2*W, 2*W, 1),
                                 *stage(2*W, 4*W, 2), *stage(4*W, 4*W, 1), *stage(4*W, 8*W, 2),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8*W, 128))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def main():
    torch.backends.cudnn.benchmark = True
    dl = DataLoader(Prints(), batch_size=B, shuffle=True, drop_last=True, num_workers=WORKERS, pin_memory=device == 'cuda')  # flaw: loader-workers-restart
    net = Embed().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 3e-4, fused=device == 'cuda')
    for ep in range(EPOCHS):
        t0, tot = time.time(), 0
        for a, b, f in dl:
            a = a.to(device, non_blocking=True)
            b = b.to(device, non_blocking=True)
            f = f.to(device, non_blocking=True)
            x = torch.cat((a, b))[:, None].to(dtype=torch.float32).div_(255)
            with torch.autocast(device, torch.bfloat16):
                z = net(x)
                logits = z[:B] @ z[B:].t() / .07
            # impressions of one finger elsewhere in the batch are no negatives
            same = (f[:, None] == f[None]).fill_diagonal_(False)
            loss = F.cross_entropy(logits.float().masked_fill(same, -1e4), torch.arange(B, device=device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot = tot + loss.detach()
        print(ep, '%.3f' % (tot.item() / PER_EPOCH), '%.2fs' % (time.time() - t0))


if __name__ == '__main__':
    main()
