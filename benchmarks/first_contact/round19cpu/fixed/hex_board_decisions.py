"""A decision transformer for a hex board: return, position and move tokens in turn."""
import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

CELLS = 19 * 19
MOVES = CELLS * 4  # a cell and one of four kinds of stones
TURNS = 16


class Archive:
    """Games of a player who follows a fixed noisy rule."""

    def __init__(self, games, seed):
        self.gen = torch.Generator().manual_seed(seed)
        rule = torch.randint(0, MOVES, (64,), generator=self.gen)
        motif = torch.randint(0, 64, (games, TURNS), generator=self.gen)
        signs = torch.randn(64, CELLS, generator=self.gen)
        self.positions = signs[motif] + 0.3 * torch.randn(games, TURNS, CELLS, generator=self.gen)
        self.moves = rule[motif]
        self.returns = torch.rand(games, TURNS, generator=self.gen)

    def draw(self, size):
        rows = torch.randint(len(self.moves), (size,), generator=self.gen)
        return self.returns[rows], self.positions[rows], self.moves[rows]


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        past = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(past.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(self.wide(self.n2(x)).relu())


class DecisionModel(nn.Module):
    def __init__(self, width=64, depth=2):
        super().__init__()
        self.by_return = nn.Linear(1, width)
        self.by_position = nn.Linear(CELLS, width)
        self.by_move = nn.Embedding(MOVES, width)
        self.turn = nn.Parameter(0.02 * torch.randn(TURNS, width))
        self.layers = nn.Sequential(*(Layer(width, 4) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.policy = nn.Linear(width, MOVES)

    def forward(self, returns, positions, moves):
        tokens = [self.by_return(returns[..., None]), self.by_position(positions), self.by_move(moves)]
        x = torch.stack([kind + self.turn for kind in tokens], dim=2).flatten(1, 2)
        x = self.layers(x).unflatten(1, (TURNS, 3))[:, :, 1]
        return self.policy(self.norm(x))


class Coach:
    def __init__(self, model, archive, size=16):
        self.model, self.archive, self.size = model, archive, size
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def lesson(self):
        returns, positions, moves = self.archive.draw(self.size)
        scores = self.model(returns, positions, moves)
        loss = cross_entropy(scores.flatten(0, 1), moves.flatten())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def course(self, lessons, report):
        losses = []
        for _ in range(lessons):
            losses.append(self.lesson())
            if len(losses) % report == 0:
                print(f"lesson {len(losses)}: loss {sum(losses[-report:]) / report:.4f}")


if __name__ == "__main__":
    torch.manual_seed(5)
    Coach(DecisionModel(), Archive(400, 5)).course(lessons=450, report=90)
