import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True


class Backbone(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        cfg = [(3, c, 4, 4), (c, c, 3, 1), (c, 2 * c, 3, 1), (2 * c, 2 * c, 3, 1), (2 * c, 2 * c, 3, 1)]
        self.seq = nn.Sequential(*[nn.Sequential(nn.Conv2d(i, o, k, s, k // 2 if k == 3 else 0, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)) for i, o, k, s in cfg])
        self.cls = nn.Conv2d(2 * c, 8, 1)

    def forward(self, x):
        return self.cls(self.seq(x))


def ohem(scores, target, keep=0.25, floor=0.7):
    each = F.cross_entropy(scores, target, reduction="none").flatten()
    ranked = each.detach().sort(descending=True).values
    n = int(keep * len(each))
    limit = ranked[n]
    if limit < floor:  # flaw: sync-in-step
        limit = ranked.new_tensor(floor)
    hard = each[each >= limit]  # flaw: sync-in-step
    return hard.mean()


def per_class_accuracy(scores, target):
    guess = scores.argmax(1)
    right = (guess == target).float()
    counts = torch.bincount(target.flatten(), minlength=8).cpu()  # flaw: sync-in-step
    hits = torch.bincount(target.flatten(), right.flatten(), minlength=8).cpu()  # flaw: sync-in-step
    return (hits / counts.clamp(min=1)).tolist()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 24
    net = Backbone().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)
    img = torch.randn(batch, 3, 256, 256, device=device).to(memory_format=torch.channels_last)
    lab = torch.randint(0, 8, (batch, 64, 64), device=device)
    history = []
    for it in range(500):
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = net(img)
        scores = scores.float()
        loss = ohem(scores, lab)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        history.append(per_class_accuracy(scores.detach(), lab))
        if it % 100 == 0:
            print(it, loss.item(), history[-1][:3])


if __name__ == "__main__":
    main()
