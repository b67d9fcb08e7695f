"""Agents meet at random, infect each other and recover; many towns are simulated side by side."""
import os

import torch

quick = bool(os.environ.get("SMALL"))
TOWNS, PEOPLE, DAYS = (4, 100, 30) if quick else (256, 4_000_000, 150)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def meet(state, clock, partner_state, infect: float, recover: int):
    """0 susceptible, 1 infectious, 2 immune; clock counts the days since infection."""
    luck = torch.rand(state.shape, device=state.device)
    ill = state == 1
    caught = (state == 0) & (partner_state == 1) & (luck < infect)
    clock = torch.where(ill, clock + 1, clock)
    healed = ill & (clock >= recover)
    state = torch.where(caught, torch.ones_like(state), torch.where(healed, torch.full_like(state, 2), state))
    return state, clock, (state == 1).float().mean(1)


if device.type == "cuda":
    meet = torch.compile(meet)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    state = torch.zeros(TOWNS, PEOPLE, dtype=torch.uint8, device=device)
    state[:, : max(1, PEOPLE // 1000)] = 1
    clock = torch.zeros(TOWNS, PEOPLE, dtype=torch.uint8, device=device)
    curve = torch.zeros(DAYS, TOWNS, device=device)
    for day in range(DAYS):
        shift = 1 + (day * 7919) % (PEOPLE - 1)
        state, clock, curve[day] = meet(state, clock, state.roll(shift, 1), 0.4, 10)
        if day % 50 == 0:
            print(f"day {day} ill {curve[day].mean().item():.4f}")
    print("peak on day", curve.mean(1).argmax().item())


main()
