"""Next-item recommendation over a catalogue."""
import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
ITEMS, DIM, LEN = 16384, 512, 128


def nll(scores, target):
    z = scores.float()
    top = z.max(dim=-1, keepdim=True).values  # flaw: hand-written-loss
    log_norm = top.squeeze(-1) + (z - top).exp().sum(-1).log()  # flaw: hand-written-loss
    hit = z.gather(-1, target.unsqueeze(-1)).squeeze(-1)  # flaw: hand-written-loss
    return (log_norm - hit).mean()  # flaw: hand-written-loss


class SASRec(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(DIM), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LEN))

    def forward(self, seq):
        h = self.enc(self.items(seq), mask=self.mask, is_causal=True)
        return h @ self.items.weight.t()


def main():
    batch = 64
    model = SASRec().to(device)
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    sessions = torch.randint(0, ITEMS, (4096, LEN + 1), device=device)
    for step in range(400):
        s = sessions[torch.randint(0, len(sessions), (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(s[:, :-1])
        loss = nll(scores, s[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
