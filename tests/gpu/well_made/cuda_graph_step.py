"""Many small layers whose forward and backward are one CUDA graph; inputs go into its own buffers."""

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

torch.backends.cuda.matmul.allow_tf32 = True
INPUTS, WIDTH, DEPTH, BATCH = 512, 4096, 12, 4096


def layers():
    for layer in range(DEPTH):
        yield nn.Linear(WIDTH if layer else INPUTS, WIDTH)
        yield nn.ReLU()


model = nn.Sequential(*layers(), nn.Linear(WIDTH, 16)).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, fused=True)
criterion = nn.CrossEntropyLoss()


class Rows(Dataset):
    """Whole batches at a time: the index is a list of rows."""

    inputs, targets = torch.randn(32768, INPUTS).bfloat16(), torch.randint(0, 16, (32768,))

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, rows):
        return self.inputs[rows], self.targets[rows]


rows = Rows()
batches = BatchSampler(RandomSampler(rows, replacement=True, num_samples=3000 * BATCH), BATCH, drop_last=True)
loader = DataLoader(rows, None, sampler=batches, num_workers=6, pin_memory=True, persistent_workers=True)
static_x = torch.zeros(BATCH, INPUTS, device="cuda", dtype=torch.bfloat16)
static_y = torch.zeros(BATCH, device="cuda", dtype=torch.int64)

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        criterion(model(static_x), static_y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = criterion(model(static_x), static_y)
    loss.backward()

for epoch in range(3):
    for x, y in loader:
        static_x.copy_(x, non_blocking=True)
        static_y.copy_(y, non_blocking=True)
        graph.replay()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
