"""Full-batch GCN on a citation graph, with a sparse product of our own."""

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")

NODES = 400_000 if cuda else 300
CITATIONS = 4_000_000 if cuda else 900
FEATURES, HIDDEN, CLASSES = (128, 128, 64) if cuda else (16, 16, 4)
EPOCHS = 400 if cuda else 6


class SpMM(torch.autograd.Function):
    """adj @ x for a symmetric adj, which needs no transpose in the backward pass."""

    @staticmethod
    def forward(ctx, adj, x):
        ctx.adj = adj
        return adj @ x

    @staticmethod
    def backward(ctx, grad):
        return None, ctx.adj @ grad.contiguous()


def normalized_adjacency(edges, n):
    """D^-1/2 (A + I) D^-1/2 in CSR."""
    loops = torch.arange(n, device=edges.device)
    row = torch.cat([edges[0], edges[1], loops])
    col = torch.cat([edges[1], edges[0], loops])
    degree = torch.zeros(n, device=edges.device).index_add_(0, row, torch.ones_like(row).float())
    scale = degree.rsqrt()
    values = scale[row] * scale[col]
    adj = torch.sparse_coo_tensor(torch.stack([row, col]), values, (n, n))
    return adj.coalesce().to_sparse_csr()


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(FEATURES, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, adj):
        x = F.relu(SpMM.apply(adj, self.lin1(x)))
        x = F.dropout(x, 0.5, self.training)
        return SpMM.apply(adj, self.lin2(x))


def make_graph():
    label = torch.randint(CLASSES, (NODES,), device=device)
    source = torch.randint(NODES, (CITATIONS,), device=device)
    # half of the citations stay close in the numbering, the others go anywhere
    near = (source + torch.randint(1, 2000, (CITATIONS,), device=device)) % NODES
    target = torch.where(torch.rand(CITATIONS, device=device) < 0.5, near, source.flip(0))
    x = torch.randn(NODES, FEATURES, device=device)
    x[:, :CLASSES] += F.one_hot(label, CLASSES)[:, :FEATURES]
    return x, torch.stack([source, target]), label


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    x, edges, label = make_graph()
    train = torch.arange(0, NODES, 2, device=device)
    model = GCN().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    adj = normalized_adjacency(edges, NODES)

    for epoch in range(EPOCHS):
        model.train()
        logits = model(x, adj)
        loss = F.cross_entropy(logits[train], label[train])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        predicted = model(x, adj).argmax(1)
    print(f"accuracy {(predicted == label)[1::2].float().mean().item():.4f}")
