"""Simulate millions of quadrotors with a cascaded attitude controller (Monte Carlo gains)."""

from typing import NamedTuple

import torch

CUDA = torch.cuda.is_available()


class Quad(NamedTuple):
    """Structure of arrays, one value per vehicle."""

    z: torch.Tensor
    vz: torch.Tensor
    roll: torch.Tensor
    pitch: torch.Tensor
    p: torch.Tensor
    q: torch.Tensor


class Gains(NamedTuple):
    height: torch.Tensor
    climb: torch.Tensor
    angle: torch.Tensor
    rate: torch.Tensor


MASS, GRAVITY, DRAG = 1.2, 9.81, 0.15
INERTIA_X, INERTIA_Y, DT = 0.014, 0.016, 0.005
MAX_THRUST, MAX_TORQUE = 25.0, 0.6


def control(s: Quad, k: Gains, target: float):
    """Thrust and torques towards a level hover at the target height."""
    climb = (k.height * (target - s.z)).clamp(-3.0, 3.0)
    lift = MASS * (GRAVITY + k.climb * (climb - s.vz))
    thrust = (lift / (torch.cos(s.roll) * torch.cos(s.pitch)).clamp_min(0.3)).clamp(0.0, MAX_THRUST)
    tau_x = (k.rate * (-k.angle * s.roll - s.p)).clamp(-MAX_TORQUE, MAX_TORQUE)
    tau_y = (k.rate * (-k.angle * s.pitch - s.q)).clamp(-MAX_TORQUE, MAX_TORQUE)
    return thrust, tau_x, tau_y


@(torch.compile if CUDA else lambda fn: fn)
def dynamics(s: Quad, k: Gains, target: float) -> Quad:
    thrust, tau_x, tau_y = control(s, k, target)
    accel = thrust * torch.cos(s.roll) * torch.cos(s.pitch) / MASS - GRAVITY
    accel = accel - DRAG * s.vz * s.vz.abs()
    p_dot = (tau_x - 0.002 * s.p * s.p.abs()) / INERTIA_X
    q_dot = (tau_y - 0.002 * s.q * s.q.abs()) / INERTIA_Y
    roll_dot = s.p + torch.sin(s.roll) * torch.tan(s.pitch) * s.q
    pitch_dot = torch.cos(s.roll) * s.q
    return Quad(
        z=s.z + DT * s.vz,
        vz=s.vz + DT * accel,
        roll=s.roll + DT * roll_dot,
        pitch=(s.pitch + DT * pitch_dot).clamp(-1.4, 1.4),
        p=s.p + DT * p_dot,
        q=s.q + DT * q_dot,
    )


def random_state(n, device):
    def noise(scale):
        return (torch.rand(n, device=device) - 0.5) * scale

    return Quad(noise(4.0), noise(2.0), noise(1.0), noise(1.0), noise(3.0), noise(3.0))


def random_gains(n, device):
    def between(low, high):
        return torch.rand(n, device=device) * (high - low) + low

    return Gains(between(0.5, 3), between(1, 6), between(2, 12), between(0.02, 0.2))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    vehicles, frames, substeps = (8_000_000, 250, 8) if CUDA else (1000, 5, 4)
    state = random_state(vehicles, device)
    gains = random_gains(vehicles, device)
    worst = torch.zeros(vehicles, device=device)
    for frame in range(frames):
        for _ in range(substeps):
            state = dynamics(state, gains, 1.5)
        torch.maximum(worst, (state.z - 1.5).abs(), out=worst)
        if frame % 50 == 0 or frame == frames - 1:
            error = (state.z - 1.5).abs().mean().item()
            print(f"frame {frame}: mean height error {error:.4f}")
    settled = ((state.z - 1.5).abs() < 0.2).float().mean().item()
    print(f"settled {settled:.4f}, worst excursion {worst.max().item():.3f}")


if __name__ == "__main__":
    main()
