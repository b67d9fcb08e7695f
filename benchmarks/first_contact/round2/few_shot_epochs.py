import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def blocks(width, depth):
    for _ in range(depth):
        yield nn.Linear(width, width)
        yield nn.GELU()


def epoch(model, loader, opt, device):
    for x, y in loader:
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
    return loss.detach()


def run():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(20 * 2048, 512), torch.randint(0, 64, (20 * 2048,)))

    class Chunks(torch.utils.data.Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, i):
            return data[i * 2048:(i + 1) * 2048]

    loader = DataLoader(Chunks(), batch_size=None, shuffle=True, num_workers=6, pin_memory=device == "cuda")  # flaw: loader-workers-restart
    model = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), *blocks(4096, 6), nn.Linear(4096, 64)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for e in range(60):
        last = epoch(model, loader, opt, device)
        if e % 10 == 9:
            print("epoch", e, "loss", round(last.item(), 4))


run()
