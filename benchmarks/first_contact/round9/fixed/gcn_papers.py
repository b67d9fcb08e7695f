"""Full-batch graph convolutional network on a citation-like graph."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

NODES = 300_000 if CUDA else 300
LINKS = 3_000_000 if CUDA else 1_500
FEATURES, HIDDEN, CLASSES = (128, 128, 40) if CUDA else (16, 16, 4)
LAYERS = 3
EPOCHS = 200 if CUDA else 10


def normalized_adjacency(edge_index, num_nodes):
    """D^-1/2 (A + I) D^-1/2 as a CSR matrix; parallel edges count once."""
    loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
    edges = torch.cat([edge_index, loops], dim=1)
    ones = torch.ones(edges.size(1), device=edges.device)
    adj = torch.sparse_coo_tensor(edges, ones, (num_nodes, num_nodes)).coalesce()
    row, col = adj.indices()
    degree = torch.zeros(num_nodes, device=edges.device).index_add_(0, row, torch.ones_like(adj.values()))
    scale = degree.rsqrt()
    values = scale[row] * scale[col]
    return torch.sparse_coo_tensor(
        adj.indices(), values, adj.shape, is_coalesced=True
    ).to_sparse_csr()


class Propagate(torch.autograd.Function):
    """adj @ x for a symmetric adj that needs no gradient."""

    @staticmethod
    def forward(ctx, adj, x):
        ctx.adj = adj
        return adj @ x

    @staticmethod
    def backward(ctx, grad):
        return None, ctx.adj @ grad.contiguous()


class GCNConv(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.linear = nn.Linear(fan_in, fan_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(fan_out))

    def forward(self, x, adj):
        return Propagate.apply(adj, self.linear(x)) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, layers, dropout=0.5):
        super().__init__()
        sizes = [features] + [hidden] * (layers - 1) + [classes]
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1))
        self.dropout = dropout

    def forward(self, x, adj):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x, adj)), inplace=True)
            x = F.dropout(x, self.dropout, self.training)
        return self.convs[-1](x, adj)


def citation_graph():
    source = torch.randint(0, NODES, (LINKS,), device=device)
    target = (source + torch.randn(LINKS, device=device).mul_(NODES / 8).long()) % NODES
    edge_index = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    label = torch.arange(NODES, device=device) * CLASSES // NODES
    x = torch.randn(NODES, FEATURES, device=device)
    x[:, :CLASSES] += 0.3 * F.one_hot(label, CLASSES)[:, :FEATURES]
    train = torch.rand(NODES, device=device) < 0.5
    return x, edge_index, label, train.nonzero().squeeze(1)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
x, edge_index, label, train_nodes = citation_graph()
adjacency = normalized_adjacency(edge_index, NODES)
model = GCN(FEATURES, HIDDEN, CLASSES, LAYERS).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=CUDA)
for epoch in range(EPOCHS):
    logits = model(x, adjacency)
    loss = F.cross_entropy(logits.index_select(0, train_nodes), label[train_nodes])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if (epoch + 1) % 50 == 0 or epoch + 1 == EPOCHS:
        accuracy = (logits.argmax(1) == label).float().mean()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy.item():.3f}")
