"""Tagging with cuDNN's LSTM."""
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab: int = 5000, d: int = 1024, tags: int = 48):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, d, num_layers=2, batch_first=True)
        self.out = nn.Linear(d, tags)

    def forward(self, ids):
        y, _ = self.rnn(self.emb(ids))
        return self.out(y)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Tagger().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batch = 512
    ids = torch.randint(0, 5000, (4, batch, 64), device=device)
    tags = torch.randint(0, 48, (4, batch, 64), device=device)
    for step in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(ids[step % 4])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags[step % 4].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
