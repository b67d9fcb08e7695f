"""Embeds a backlog of help-desk tickets for a similarity index."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

settings = {
    "vocabulary": 8000,
    "longest": 96,
    "rows": 32,
    "width": 128,
    "heads": 4,
    "layers": 2,
    "tickets": 32 * 320,
    "workers": 0,
}
PAD = 0


class Backlog(torch.utils.data.Dataset):
    """Batches of tickets (lists of token numbers), similar lengths together."""

    def __init__(self, count, rows, vocabulary, longest):
        g = torch.Generator().manual_seed(60)
        lengths = (18 * torch.empty(count).log_normal_(0, 0.7, generator=g)).long().clamp(4, longest)
        words = torch.randint(1, vocabulary, (int(lengths.sum()),), generator=g)
        tickets = words.split(lengths.tolist())
        groups = lengths.argsort().view(-1, rows)
        groups = groups[torch.randperm(len(groups), generator=g)]
        self.groups = [[tickets[i] for i in group] for group in groups.tolist()]

    def __len__(self):
        return len(self.groups)

    def __getitem__(self, index):
        return self.groups[index]


def rectangle(tickets, longest):
    ids = torch.full((len(tickets), longest), PAD)
    for row, ticket in zip(ids, tickets):
        row[: len(ticket)] = ticket
    return ids


class Reader(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_q = nn.Linear(width, width)
        self.to_kv = nn.Linear(width, 2 * width)
        self.back = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, allowed):
        y = self.norm1(x)
        k, v = self.to_kv(y).chunk(2, dim=-1)
        y = F.scaled_dot_product_attention(self.split(self.to_q(y)), self.split(k), self.split(v), attn_mask=allowed)
        x = x + self.back(y.transpose(1, 2).flatten(2))
        return x + self.narrow(F.relu(self.wide(self.norm2(x))))


class TicketEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.words = nn.Embedding(cfg["vocabulary"], cfg["width"], padding_idx=PAD)
        self.order = nn.Embedding(cfg["longest"], cfg["width"])
        self.readers = nn.ModuleList(Reader(cfg["width"], cfg["heads"]) for _ in range(cfg["layers"]))
        self.out = nn.Linear(cfg["width"], cfg["width"])

    def forward(self, ids):
        real = ids != PAD
        x = self.words(ids) + self.order.weight[: ids.shape[1]]
        for reader in self.readers:
            x = reader(x, real[:, None, None, :])
        share = real.float() / real.sum(1, keepdim=True)
        return F.normalize(self.out(torch.bmm(share.unsqueeze(1), x).squeeze(1)), dim=1)


def collate(picked):
    (tickets,) = picked
    return rectangle(tickets, max(map(len, tickets)))


def main():
    torch.manual_seed(61)
    encoder = TicketEncoder(settings).eval()
    backlog = Backlog(settings["tickets"], settings["rows"], settings["vocabulary"], settings["longest"])
    loader = DataLoader(backlog, batch_size=1, collate_fn=collate, num_workers=settings["workers"])
    index = torch.empty(settings["tickets"], settings["width"])
    filled = 0
    with torch.inference_mode():
        for number, ids in enumerate(loader, 1):
            vectors = encoder(ids)
            index[filled : filled + len(vectors)] = vectors
            filled += len(vectors)
            if number % 40 == 0:
                centre = index[:filled].mean(0).norm()
                print(f"{filled:6d} tickets, norm of the mean {centre.item():.5f}", flush=True)
    probe = index[:5] @ index[:filled].T
    print("neighbours:", probe.topk(2, dim=1).indices[:, 1].tolist())


if __name__ == "__main__":
    main()
