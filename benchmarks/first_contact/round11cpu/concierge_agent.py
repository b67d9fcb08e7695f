"""A contextual concierge agent: it keeps a memory of guests as plain objects and learns which offer to make.

Every guest has a small profile; the policy network sees the profile and picks one of the offers.
"""

import gc
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field

import torch
from torch import nn

OFFERS = ("spa", "late checkout", "dinner", "airport car", "museum pass", "upgrade")


@dataclass
class Guest:
    name: str
    tastes: list[float]
    visits: deque = field(default_factory=lambda: deque(maxlen=4))
    notes: dict[str, int] = field(default_factory=dict)


class GuestBook:
    def __init__(self, guests: int, tastes: int, seed: int):
        rng = random.Random(seed)
        self.guests = [
            Guest(f"guest-{i}", [rng.gauss(0, 1) for _ in range(tastes)], notes={"room": rng.randrange(400)})
            for i in range(guests)
        ]
        self.by_room: dict[int, list[Guest]] = defaultdict(list)
        for guest in self.guests:
            self.by_room[guest.notes["room"]].append(guest)
        self.profiles = torch.tensor([guest.tastes for guest in self.guests])

    def arrivals(self, n: int, gen: torch.Generator) -> torch.Tensor:
        return torch.randint(len(self.guests), (n,), generator=gen)

    def remember(self, who: list[int], offers: list[int], pleased: list[float]) -> None:
        for i, offer, joy in zip(who, offers, pleased):
            self.guests[i].visits.append((offer, joy))


class Housekeeping:
    """Runs after the updates; long training runs of the first version grew without it."""

    def after_update(self, update: int, loss: float) -> None:
        if update % 20 == 0:  # flaw: gc-pause-in-step
            gc.collect()  # flaw: gc-pause-in-step
        if update % 100 == 0:
            print(f"update {update}: loss {loss:.4f}")


class Policy(nn.Module):
    def __init__(self, tastes: int, hidden: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(tastes, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, len(OFFERS))
        )

    def forward(self, profile):
        return self.body(profile)


class Concierge:
    def __init__(self, book: GuestBook, tastes: int, hooks: list):
        self.book, self.hooks = book, hooks
        self.policy = Policy(tastes, hidden=512)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3, fused=True)
        self.gen = torch.Generator().manual_seed(17)
        self.liking = torch.randn(tastes, len(OFFERS), generator=self.gen)

    def update(self, number: int, batch: int) -> None:
        who = self.book.arrivals(batch, self.gen)
        profile = self.book.profiles[who]
        logits = self.policy(profile)
        offer = torch.multinomial(logits.detach().softmax(1), 1, generator=self.gen)
        pleased = (profile @ self.liking).gather(1, offer).tanh()
        loss = -(logits.log_softmax(1).gather(1, offer) * pleased).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.book.remember(who[:32].tolist(), offer[:32, 0].tolist(), pleased[:32, 0].tolist())
        for hook in self.hooks:
            hook.after_update(number, loss.item())


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(16)
    tastes = 24
    book = GuestBook(3_000, tastes, seed=18)
    agent = Concierge(book, tastes, hooks=[Housekeeping()])
    for number in range(1, 601):
        agent.update(number, batch=512)


if __name__ == "__main__":
    main()
