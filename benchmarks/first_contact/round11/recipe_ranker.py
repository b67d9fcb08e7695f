"""Rank recipes: eight categorical features with small vocabularies, pairwise loss over the shown list."""
import torch
import torch.nn.functional as F
from torch import nn

SIZES = {
    True: {"vocabulary": 200_000, "dim": 64, "lists": 4096, "shown": 16, "hidden": (2048, 2048, 512),
           "steps": 250},
    False: {"vocabulary": 500, "dim": 8, "lists": 8, "shown": 4, "hidden": (32, 16), "steps": 5},
}
FEATURES = 8


class Scorer(nn.Module):
    """Embedded features of a recipe to its score, the mean of eight heads."""

    def __init__(self, sizes):
        super().__init__()
        widths = (FEATURES * sizes["dim"], *sizes["hidden"])
        self.layers = nn.ModuleList(nn.Linear(n_in, n_out) for n_in, n_out in zip(widths, widths[1:]))
        self.heads = nn.Linear(widths[-1], 8)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.heads(x).mean(-1)


class RecipeRanker(nn.Module):
    """Ids (lists x shown x features) to scores (lists x shown)."""

    def __init__(self, sizes):
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["dim"])
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.scorer = Scorer(sizes)

    def forward(self, ids):
        return self.scorer(self.embedding(ids).flatten(2))


def pairwise_loss(scores, clicked):
    """The clicked recipe of each list against all others of the list."""
    return F.cross_entropy(scores, clicked)


def sessions(sizes, device, seed=140):
    """Batches as they come out of the feature store on the device."""
    gen = torch.Generator(device).manual_seed(seed)
    shape = (8, sizes["lists"], sizes["shown"], FEATURES)
    ids = torch.randint(0, sizes["vocabulary"], shape, generator=gen, device=device)
    clicked = torch.randint(0, sizes["shown"], shape[:2], generator=gen, device=device)
    for step in range(sizes["steps"]):
        yield ids[step % 8], clicked[step % 8]


def make_step(model, optimizer, device):
    def step(ids, clicked):
        with torch.autocast(device.type, torch.bfloat16):
            loss = pairwise_loss(model(ids), clicked)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    sizes = SIZES[gpu]
    torch.manual_seed(141)
    model = RecipeRanker(sizes).to(device)
    if gpu:
        model.scorer.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    step = make_step(model, optimizer, device)
    losses = torch.stack([step(ids, clicked) for ids, clicked in sessions(sizes, device)]).cpu()
    print(f"pairwise loss: {losses[0].item():.4f} at the start, {losses[-5:].mean().item():.4f} at the end")


if __name__ == "__main__":
    main()
