"""Sequence-to-sequence: an encoder and a decoder of torch's own layers, with smoothed targets."""
import torch
from torch import nn

config = {"vocab": 16384, "d_model": 512, "nhead": 8, "layers": 3, "batch": 48, "length": 128, "steps": 320, "eps": 0.1}


class Smoothed(nn.Module):
    def __init__(self, size, smoothing):
        super().__init__()
        self.size, self.smoothing = size, smoothing

    def forward(self, scores, gold):
        logp = scores.log_softmax(-1)  # flaw: hand-written-loss
        target = torch.full_like(logp, self.smoothing / self.size)  # flaw: hand-written-loss
        target.scatter_(1, gold[:, None], 1 - self.smoothing + self.smoothing / self.size)  # flaw: hand-written-loss
        return (-target * logp).sum(1).mean()  # flaw: hand-written-loss


class Translator(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.src = nn.Embedding(c["vocab"], c["d_model"])
        self.tgt = nn.Embedding(c["vocab"], c["d_model"])
        self.core = nn.Transformer(
            c["d_model"], c["nhead"], c["layers"], c["layers"], 2048, dropout=0.0, batch_first=True, norm_first=True
        )
        self.out = nn.Linear(c["d_model"], c["vocab"])

    def forward(self, s, t, causal):
        return self.out(self.core(self.src(s), self.tgt(t), tgt_mask=causal, tgt_is_causal=True))


def main(c):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Translator(c).to(device)
    criterion = Smoothed(c["vocab"], c["eps"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    src = torch.randint(c["vocab"], (c["batch"], c["length"]), device=device)
    tgt = torch.randint(c["vocab"], (c["batch"], c["length"] + 1), device=device)
    causal = nn.Transformer.generate_square_subsequent_mask(c["length"], device=device)
    for _ in range(c["steps"]):
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            scores = model(src, tgt[:, :-1], causal)
            loss = criterion(scores.flatten(0, 1), tgt[:, 1:].flatten())
        loss.backward()
        optimizer.step()


main(config)
