# GRU language model over subwords, truncated backpropagation.
import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = {"vocab": 8000, "emb": 64, "hid": 48, "bptt": 16, "batch": 8, "iters": 350}


class TokenCrossEntropy(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, logits, target):
        prob = F.softmax(logits, dim=-1)  # flaw: hand-written-loss
        one_hot = F.one_hot(target, self.classes).to(prob.dtype)  # flaw: hand-written-loss
        nll = -(one_hot * torch.log(prob + 1e-9)).sum(dim=-1)  # flaw: hand-written-loss
        return nll.mean()  # flaw: hand-written-loss


class SubwordLM(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.enc = nn.Embedding(vocab, emb)
        self.rnn = nn.GRU(emb, hid, batch_first=True)
        self.squeeze = nn.Linear(hid, 32)
        self.dec = nn.Linear(32, vocab)

    def forward(self, x, state):
        out, state = self.rnn(self.enc(x), state)
        return self.dec(self.squeeze(out)), state


def corpus(n, vocab):
    g = torch.Generator().manual_seed(12)
    base = torch.randint(0, vocab, (n,), generator=g)
    base[1::2] = (base[::2] * 31 + 7) % vocab
    return base


def main():
    torch.set_num_threads(1)
    torch.manual_seed(12)
    B, T = cfg["batch"], cfg["bptt"]
    stream = corpus(B * (T * cfg["iters"] + 1), cfg["vocab"]).view(B, -1)
    model = SubwordLM(cfg["vocab"], cfg["emb"], cfg["hid"])
    criterion = TokenCrossEntropy(cfg["vocab"])
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    state = None
    for it in range(cfg["iters"]):
        x, y = stream[:, it * T:(it + 1) * T], stream[:, it * T + 1:(it + 1) * T + 1]
        if state is not None:
            state = state.detach()
        logits, state = model(x, state)
        loss = criterion(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        if (it + 1) % 50 == 0:
            print(f"| iter {it + 1} | loss {loss.item():.4f}")


main()
