"""Premixed flame front in two dimensions: five species, Arrhenius kinetics, SSP-RK3."""
import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
NY, NX = (2048, 4096) if CUDA else (32, 32)
STEPS = 300 if CUDA else 3
DT = 2e-3

# pre-exponential factor, activation temperature, heat release of each reaction
REACTIONS = ((8.0, 6.0, 1.6), (5.0, 4.5, 0.9), (2.5, 7.0, 0.4), (1.2, 3.0, -0.2))


def kinetics(temperature, fuel, oxygen, radical, product):  # flaw: unfused-elementwise
    """Sources of temperature, fuel, oxygen, radical and product."""
    inverse = 1.0 / temperature.clamp(min=0.2)
    (a1, e1, q1), (a2, e2, q2), (a3, e3, q3), (a4, e4, q4) = REACTIONS
    r1 = a1 * torch.exp(-e1 * inverse) * fuel * oxygen
    r2 = a2 * torch.exp(-e2 * inverse) * fuel * radical
    r3 = a3 * torch.exp(-e3 * inverse) * radical * radical * oxygen
    r4 = a4 * torch.exp(-e4 * inverse) * temperature.sqrt() * product
    heat = q1 * r1 + q2 * r2 + q3 * r3 + q4 * r4 - 0.01 * (temperature - 0.3)
    d_fuel = -r1 - r2 + 0.5 * r4
    d_oxygen = -r1 - r3 + 0.5 * r4
    d_radical = r1 - r2 - 2 * r3 + 0.1 * r4
    d_product = r1 + 2 * r2 + r3 - r4
    return heat, d_fuel, d_oxygen, d_radical, d_product


def stage(u0, u, diffusion, weight):  # flaw: unfused-elementwise
    """An Euler step from u, mixed with u0."""
    rate = diffusion + torch.stack(kinetics(*u[0]))[None]
    return torch.lerp(u0, torch.add(u, rate, alpha=DT), weight)


def laplacian_kernel(channels):
    stencil = torch.tensor([[0.25, 0.5, 0.25], [0.5, -3.0, 0.5], [0.25, 0.5, 0.25]], device=DEVICE)
    return stencil.expand(channels, 1, 3, 3).contiguous()


class Flame:
    def __init__(self):
        self.kernel = laplacian_kernel(5)
        self.diffusivity = torch.tensor([0.2, 0.1, 0.12, 0.3, 0.1], device=DEVICE).view(1, 5, 1, 1)
        self.kernel *= self.diffusivity.view(5, 1, 1, 1)
        self.weights = torch.tensor([1.0, 1 / 4, 2 / 3], device=DEVICE).unbind()
        x = torch.linspace(0, 1, NX, device=DEVICE).expand(NY, NX)
        wrinkle = 0.02 * torch.sin(torch.arange(NY, device=DEVICE) * 0.05)[:, None]
        burnt = torch.sigmoid((0.2 + wrinkle - x) * 60)
        state = [0.3 + 1.2 * burnt, 1 - burnt, 1.2 - burnt, 0.05 * burnt, burnt]
        self.state = torch.stack(state)[None]

    def diffusion(self, u):
        padded = torch.nn.functional.pad(u, (1, 1, 1, 1), mode="replicate")
        return torch.nn.functional.conv2d(padded, self.kernel, groups=5)

    def step(self):
        u = self.state
        for weight in self.weights:
            u = stage(self.state, u, self.diffusion(u), weight)
        self.state = u


@torch.inference_mode()
def main():
    flame = Flame()
    position = []
    for _ in range(STEPS):
        flame.step()
        position.append((flame.state[0, 0] > 0.9).float().mean())
    front = torch.stack(position).tolist()
    print(f"burnt share: {front[0]:.4f} at the start, {front[-1]:.4f} at the end")


if __name__ == "__main__":
    main()
