"""Predicts sets of objects; each picture has its own cost."""
import torch
from torch import nn
import torch.nn.functional as F


class SetHead(nn.Module):
    def __init__(self, dim=1024, depth=4):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(dim, dim), nn.ReLU()) for _ in range(depth)])
        self.box, self.kind = nn.Linear(dim, 4), nn.Linear(dim, 92)

    def forward(self, q):
        h = self.body(q)
        return self.box(h).sigmoid(), self.kind(h)


def set_loss(boxes, kinds, true_boxes, true_kinds):
    total = []
    for i, target in enumerate(true_kinds):  # flaw: python-loop-over-tensor
        near = F.l1_loss(boxes[i], true_boxes[i])  # flaw: python-loop-over-tensor
        right = F.cross_entropy(kinds[i], target)  # flaw: python-loop-over-tensor
        total.append(5 * near + right)  # flaw: python-loop-over-tensor
    return torch.stack(total).mean()  # flaw: python-loop-over-tensor


def trainer(batch=128, queries=100, dim=1024):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    head = SetHead(dim).to(device)
    opt = torch.optim.AdamW(head.parameters(), 1e-4, fused=True)
    q = torch.randn(batch, queries, dim, device=device)
    true_boxes = torch.rand(batch, queries, 4, device=device)
    true_kinds = torch.randint(92, (batch, queries), device=device)

    def step():
        with torch.autocast(device, torch.bfloat16):
            boxes, kinds = head(q)
        loss = set_loss(boxes.float(), kinds.float(), true_boxes, true_kinds)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    return step


step = trainer()
for _ in range(320):
    last = step()
print(float(last))
