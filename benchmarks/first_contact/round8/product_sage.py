# GraphSAGE on a co-purchase graph; neighbours are drawn on the device.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
torch.manual_seed(0)

nodes, degree, features, classes = (400_000, 32, 128, 48) if gpu else (200, 6, 8, 4)
hidden = 1024 if gpu else 16
fanout = (10, 10) if gpu else (3, 2)
batch_size = 2048 if gpu else 8
steps = 300 if gpu else 15
feature_dtype = torch.bfloat16 if gpu else torch.float32

# the graph: a table of neighbours, and features whose mean tells the class
neighbours = torch.randint(nodes, (nodes, degree), device=device, dtype=torch.int32)
labels = torch.randint(classes, (nodes,), device=device)
centres = torch.randn(classes, features, device=device)
table = (centres[labels] + 2 * torch.randn(nodes, features, device=device)).to(feature_dtype)


class SageLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.others = nn.Linear(inputs, outputs, bias=False)

    def forward(self, node, around):
        return self.own(node) + self.others(around.mean(dim=-2))


class GraphSage(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, hidden))
        self.layer1 = SageLayer(hidden, hidden)
        self.layer2 = SageLayer(hidden, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, seeds, first, second):
        seeds, first, second = self.encode(seeds), self.encode(first), self.encode(second)
        inner = F.relu(self.layer1(seeds, first), inplace=True)
        outer = F.relu(self.layer1(first, second), inplace=True)
        return self.classify(F.relu(self.layer2(inner, outer), inplace=True))


def draw(of, count):
    columns = torch.randint(degree, (*of.shape, count), device=device)
    return neighbours[of.unsqueeze(-1), columns]


model = GraphSage().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=gpu)
correct = torch.zeros((), device=device)

for step in range(steps):
    seeds = torch.randint(nodes, (batch_size,), device=device)
    first = draw(seeds, fanout[0])
    second = draw(first, fanout[1])
    with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
        logits = model(table[seeds], table[first], table[second])
        loss = F.cross_entropy(logits, labels[seeds], label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step >= steps - 10:
        correct += (logits.argmax(1) == labels[seeds]).sum()

print(f"loss {loss.item():.4f}, accuracy of the last ten batches {correct.item() / 10 / batch_size:.3f}")
