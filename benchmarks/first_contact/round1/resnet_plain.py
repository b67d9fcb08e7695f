"""A plain residual network in bfloat16 with a cosine schedule."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.skip = nn.Identity() if i == o and stride == 1 else nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.na(self.a(x)), inplace=True)
        return F.relu(self.nb(self.b(y)) + self.skip(x), inplace=True)


def resnet(widths=(64, 128, 256, 512), per=2):
    parts, c = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for k, w in enumerate(widths):
        for j in range(per):
            parts.append(Basic(c, w, 2 if j == 0 and k else 1))
            c = w
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1000))


torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"
model = resnet().to(device)  # flaw: channels-first-conv
images = torch.randn(128, 3, 224, 224, device=device)  # flaw: channels-first-conv
labels = torch.randint(1000, (128,), device=device)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 300)
for step in range(300):
    opt.zero_grad()
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(images), labels)
    loss.backward()
    opt.step()
    schedule.step()
