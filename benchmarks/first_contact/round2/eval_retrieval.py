import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d=1024, n=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 16, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, n, enable_nested_tensor=False)
        self.emb = nn.Embedding(4096, d)

    def forward(self, ids):
        return F.normalize(self.enc(self.emb(ids)).mean(1), dim=-1)


def recall_at(model, queries, index, k, device):
    model.eval()
    hits = torch.zeros((), device=device)
    seen = 0
    for ids, gold in queries:
        with torch.autocast(device, dtype=torch.bfloat16):
            z = model(ids)  # flaw: grad-in-eval
            found = (z.to(index.dtype) @ index.t()).topk(k, dim=-1).indices  # flaw: grad-in-eval
        hits += (found == gold[:, None]).any(1).float().sum()
        seen += len(gold)
    return hits / seen


def batches(n, device, batch=64, length=128):
    for _ in range(n):
        yield torch.randint(0, 4096, (batch, length), device=device), torch.randint(0, 65536, (batch,), device=device)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Encoder().to(device)
    index = F.normalize(torch.randn(65536, 1024, device=device), dim=-1).bfloat16()
    for sweep in range(10):
        print(sweep, recall_at(model, batches(100, device), index, 10, device).item())
