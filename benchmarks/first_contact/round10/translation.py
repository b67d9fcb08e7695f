"""Train an encoder-decoder transformer for translation with label smoothing."""

import torch
import torch.nn as nn
import torch.nn.functional as F

use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")

SRC_VOCAB = TGT_VOCAB = 32000 if use_cuda else 120
D_MODEL, HEADS, LAYERS = (512, 8, 6) if use_cuda else (32, 2, 1)
BATCH, LENGTH = (96, 64) if use_cuda else (4, 10)
STEPS = 240 if use_cuda else 6
SMOOTHING = 0.1


class LabelSmoothing(nn.Module):
    """Cross entropy against a target that keeps a little mass for every word."""

    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits, target):
        words = logits.size(-1)
        probs = F.softmax(logits.float(), dim=-1)  # flaw: hand-written-loss
        truth = F.one_hot(target, words).float()  # flaw: hand-written-loss
        truth = truth * (1.0 - self.smoothing) + self.smoothing / words  # flaw: hand-written-loss
        return -(truth * torch.log(probs + 1e-9)).sum(dim=-1).mean()  # flaw: hand-written-loss


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_embed = nn.Embedding(SRC_VOCAB, D_MODEL)
        self.tgt_embed = nn.Embedding(TGT_VOCAB, D_MODEL)
        self.positions = nn.Parameter(torch.randn(LENGTH, D_MODEL) * 0.02)
        self.transformer = nn.Transformer(
            D_MODEL, HEADS, LAYERS, LAYERS, 4 * D_MODEL, dropout=0.0, batch_first=True, norm_first=True
        )
        self.generator = nn.Linear(D_MODEL, TGT_VOCAB)
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        self.register_buffer("causal", mask, persistent=False)

    def forward(self, src, tgt):
        source = self.src_embed(src) + self.positions
        target = self.tgt_embed(tgt) + self.positions
        hidden = self.transformer(source, target, tgt_mask=self.causal, tgt_is_causal=True)
        return self.generator(hidden)


def noam(step, warmup=400):
    step = max(step, 1)
    return D_MODEL**-0.5 * min(step**-0.5, step * warmup**-1.5)


def sentence_pairs(count):
    """The target is the source in reverse order, in other words."""
    src = torch.randint(2, SRC_VOCAB, (count, LENGTH), device=device)
    words = torch.randperm(TGT_VOCAB, device=device)
    tgt = words[src.flip(1)]
    start = torch.zeros(count, 1, dtype=torch.long, device=device)
    return src, torch.cat([start, tgt], dim=1)


def train_epoch(model, criterion, optimizer, scheduler, pairs, steps):
    src, tgt = pairs
    total = torch.zeros((), device=device)
    for step in range(steps):
        rows = torch.randint(len(src), (BATCH,), device=device)
        source, target = src[rows], tgt[rows]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(source, target[:, :-1])
            loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        total += loss.detach()
    return total.item() / steps


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Translator().to(device)
    criterion = LabelSmoothing(SMOOTHING)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, noam)
    pairs = sentence_pairs(BATCH * 30)
    for epoch in range(3):
        loss = train_epoch(model, criterion, optimizer, scheduler, pairs, STEPS // 3)
        print(f"epoch {epoch}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
