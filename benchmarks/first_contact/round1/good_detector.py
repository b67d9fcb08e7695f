"""A dense detector: one map of scores and boxes, no selection in the step."""
import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True))


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv(3, 64, 2), conv(64, 128, 2), conv(128, 256), conv(256, 256, 2), conv(256, 512), conv(512, 512))
        self.box, self.kind = nn.Conv2d(512, 4, 1), nn.Conv2d(512, 80, 1)

    def forward(self, x):
        h = self.body(x)
        return self.box(h), self.kind(h)


net = Dense().to(device, memory_format=torch.channels_last)
opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)
x = torch.rand(64, 3, 320, 320, device=device).to(memory_format=torch.channels_last)
boxes, kinds = torch.rand(64, 4, 40, 40, device=device), torch.rand(64, 80, 40, 40, device=device)
for _ in range(300):
    with torch.autocast(device, torch.bfloat16):
        b, k = net(x)
        loss = F.smooth_l1_loss(b, boxes) + F.binary_cross_entropy_with_logits(k, kinds)
    opt.zero_grad()
    loss.backward()
    opt.step()
