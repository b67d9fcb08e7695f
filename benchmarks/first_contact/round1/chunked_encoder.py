"""Encodes long documents piece by piece and pools the pieces with learned weights."""
import torch
from torch import nn


class PieceEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x + self.ff(x))


class DocumentModel(nn.Module):
    def __init__(self, dim=1024, classes=50):
        super().__init__()
        self.encoder = PieceEncoder(dim)
        self.weigh = nn.Linear(dim, 1)
        self.classify = nn.Linear(dim, classes)

    def forward(self, document, piece=64):
        encoded = document[:, :0]
        start = 0
        while start < document.size(1):
            part = self.encoder(document[:, start : start + piece])
            encoded = torch.hstack((encoded, part))  # flaw: cat-in-loop
            start += piece
        weights = self.weigh(encoded).softmax(1)
        return self.classify((weights * encoded).sum(1))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = DocumentModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    documents = torch.randn(32, 2560, 1024, device=device)
    topics = torch.randint(50, (32,), device=device)
    for step in range(300):
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(documents), topics)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
