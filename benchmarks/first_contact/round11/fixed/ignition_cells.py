"""Chemical kinetics of ignition in many independent cells: explicit integration, compiled."""
import logging

import torch

log = logging.getLogger("ignition")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CELLS = 16_777_216 if CUDA else 2000
STEPS = 120 if CUDA else 3
SUBSTEPS = 20 if CUDA else 3

# Two-step mechanism, scaled: fuel + oxygen -> intermediate; intermediate + oxygen -> product
PRE_1, PRE_2, PRE_BACK = 4.0e3, 9.0e2, 2.0e1
T_ACT_1, T_ACT_2, T_ACT_BACK = 11.0, 7.5, 14.0
HEAT_1, HEAT_2 = 1.4, 3.1
LOSS = 0.02


def rates(fuel, oxygen, middle, temperature):
    """Rates of the two steps and of the reverse of the first (modified Arrhenius forms)."""
    inverse = 1.0 / temperature
    forward = PRE_1 * torch.exp(-T_ACT_1 * inverse) * fuel * oxygen
    backward = PRE_BACK * torch.exp(-T_ACT_BACK * inverse) * middle * temperature.sqrt()
    burn = PRE_2 * torch.exp(-T_ACT_2 * inverse) * middle * oxygen
    falloff = forward / (1.0 + 0.3 * forward)
    return falloff, backward, burn


def limit(rate, available, dt):
    """No more of a species is consumed than there is."""
    return torch.minimum(rate, 0.5 * available / dt)


@torch.compile(disable=not CUDA)
def substep(fuel, oxygen, middle, temperature, dt):
    forward, backward, burn = rates(fuel, oxygen, middle, temperature)
    forward = limit(forward, torch.minimum(fuel, oxygen), dt)
    backward = limit(backward, middle, dt)
    burn = limit(burn, torch.minimum(middle, oxygen), dt)
    net = forward - backward
    heat = HEAT_1 * net + HEAT_2 * burn - LOSS * (temperature - 1.0)
    fuel = (fuel - dt * net).clamp(min=0.0)
    oxygen = (oxygen - dt * (net + burn)).clamp(min=0.0)
    middle = (middle + dt * (net - burn)).clamp(min=0.0)
    temperature = temperature + dt * heat
    return fuel, oxygen, middle, temperature


class Reactor:
    def __init__(self, cells, seed=0):
        gen = torch.Generator(DEVICE).manual_seed(seed)
        self.fuel = 0.6 + 0.4 * torch.rand(cells, device=DEVICE, generator=gen)
        self.oxygen = 1.0 + 0.5 * torch.rand(cells, device=DEVICE, generator=gen)
        self.middle = torch.zeros(cells, device=DEVICE)
        self.temperature = 1.0 + 0.4 * torch.rand(cells, device=DEVICE, generator=gen)

    @property
    def state(self):
        return self.fuel, self.oxygen, self.middle, self.temperature

    def advance(self, span, substeps):
        state, dt = self.state, span / substeps
        log.debug("%d substeps of %d cells, dt %.2e", substeps, self.fuel.numel(), dt)
        for _ in range(substeps):
            state = substep(*state, dt)
        self.fuel, self.oxygen, self.middle, self.temperature = state

    def ignited(self):
        return (self.temperature > 1.8).float().mean()


def first_time(curve, level, span):
    """Time at which the ignited share first reaches the level, or None."""
    for i, share in enumerate(curve):
        if share >= level:
            return round((i + 1) * span, 4)
    return None


@torch.no_grad()
def main():
    logging.basicConfig(level=logging.INFO)
    reactor, span = Reactor(CELLS), 0.02
    shares = []
    for _ in range(STEPS):
        reactor.advance(span, SUBSTEPS)
        shares.append(reactor.ignited())
    curve = torch.stack(shares).tolist()
    print(f"ignited share at the end {curve[-1]:.4f}, ten percent at t = {first_time(curve, 0.1, span)}")
    for name, field in zip(("fuel", "oxygen", "middle", "temperature"), reactor.state):
        print(f"{name:12s} {field.mean().item():.5f}")


if __name__ == "__main__":
    main()
