"""Scores answer choices: the probability of the letters A to D after each question."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
SIZES = dict(dim=1024, heads=16, layers=8, vocab=50304, length=512, batch=32, questions=12800)
if not CUDA:
    SIZES = dict(dim=32, heads=2, layers=2, vocab=256, length=32, batch=4, questions=48)


class Questions(Dataset):
    def __init__(self, count, length, vocab):
        generator = torch.Generator().manual_seed(11)
        self.ids = torch.randint(vocab, (count, length), generator=generator)
        self.lengths = torch.randint(length * 3 // 4, length + 1, (count,), generator=generator)
        self.answers = torch.randint(4, (count,), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitems__(self, rows):
        rows = torch.tensor(rows)
        return self.ids[rows], self.lengths[rows], self.answers[rows]


def keep(batch):
    return batch


class Decoder(nn.Module):
    def __init__(self, dim, heads, layers, vocab, length):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocab, dim)
        self.place = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * layers + 1))
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(layers))
        self.mix = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(layers))
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def attend(self, i, x):
        b, t, c = x.shape
        q, k, v = self.qkv[i](x).view(b, t, 3, self.heads, c // self.heads).transpose(1, 3).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.mix[i](y.transpose(1, 2).reshape(b, t, c))

    def forward(self, ids, last):
        x = self.embed(ids) + self.place[: ids.shape[1]]
        for i in range(len(self.qkv)):
            x = x + self.attend(i, self.norms[2 * i](x))
            x = x + self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x))))
        rows = torch.arange(x.shape[0], device=x.device)
        return self.lm_head(self.norms[-1](x[rows, last]))


@torch.inference_mode()
def evaluate(model, loader, letters, device):
    correct = torch.zeros((), device=device)
    margin = torch.zeros((), device=device)
    seen = 0
    for ids, lengths, answers in loader:
        ids = ids.to(device, non_blocking=True)
        last = lengths.to(device, non_blocking=True) - 1
        answers = answers.to(device, non_blocking=True)
        scores = model(ids, last)[:, letters].float().log_softmax(dim=-1)
        top = scores.topk(2, dim=-1)
        correct += (top.indices[:, 0] == answers).sum()
        margin += (top.values[:, 0] - top.values[:, 1]).sum()
        seen += ids.shape[0]
    return correct.item() / seen, margin.item() / seen


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    data = Questions(SIZES["questions"], SIZES["length"], SIZES["vocab"])
    loader = DataLoader(
        data, batch_size=SIZES["batch"], num_workers=8 if CUDA else 0, pin_memory=CUDA, collate_fn=keep
    )
    with device:
        model = Decoder(SIZES["dim"], SIZES["heads"], SIZES["layers"], SIZES["vocab"], SIZES["length"])
    model = model.to(torch.bfloat16 if CUDA else torch.float32).eval()
    letters = torch.tensor([32, 33, 34, 35], device=device)
    accuracy, margin = evaluate(model, loader, letters, device)
    print(f"accuracy {accuracy:.4f}  mean margin {margin:.5f}")


if __name__ == "__main__":
    main()
