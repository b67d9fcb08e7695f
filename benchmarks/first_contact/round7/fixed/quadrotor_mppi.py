"""Model-predictive path integral control of a quadrotor that follows a figure of eight."""

import math

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SAMPLES, HORIZON, TICKS = (8192, 30, 300) if CUDA else (32, 5, 4)
DT, MASS, GRAVITY, ARM, DRAG = 0.02, 0.8, 9.81, 0.17, 0.05
TEMPERATURE, SPREAD = 0.5, 0.6


def rotate(q, v):
    """Vector v in the world frame, quaternion q = (w, x, y, z)."""
    w, xyz = q[..., :1], q[..., 1:]
    t = 2 * torch.cross(xyz, v, dim=-1)
    return v + w * t + torch.cross(xyz, t, dim=-1)


def quaternion_rate(q, omega):
    w, x, y, z = q.unbind(-1)
    p, r, s = omega.unbind(-1)
    rate = (-x * p - y * r - z * s, w * p + y * s - z * r, w * r - x * s + z * p, w * s + x * r - y * p)
    return 0.5 * torch.stack(rate, -1)


@torch.compile(disable=not CUDA)
def dynamics(state, thrusts):
    position, velocity, q, omega = state.split((3, 3, 4, 3), dim=-1)
    thrusts = thrusts.clamp(0.0, 6.0)
    a, b, c, d = thrusts.unbind(-1)
    lift = torch.stack((torch.zeros_like(a), torch.zeros_like(a), a + b + c + d), -1) / MASS
    acceleration = rotate(q, lift) - DRAG * velocity * velocity.norm(dim=-1, keepdim=True)
    gravity = torch.zeros_like(acceleration)
    gravity[..., 2] = GRAVITY
    acceleration = acceleration - gravity
    p, r, s = omega.unbind(-1)
    torque = torch.stack((ARM * (a - c) / 0.005, ARM * (b - d) / 0.005, 0.016 * (a - b + c - d) / 0.009), -1)
    gyro = torch.stack((0.8 * r * s, -0.8 * p * s, torch.zeros_like(p)), -1)
    omega_next = omega + DT * (torque - gyro - 0.3 * omega)
    velocity_next = velocity + DT * acceleration
    position_next = position + DT * 0.5 * (velocity + velocity_next)
    q_next = q + DT * quaternion_rate(q, omega_next)
    q_next = q_next / q_next.norm(dim=-1, keepdim=True)
    return torch.cat((position_next, velocity_next, q_next, omega_next), -1)


def stage_cost(state, target):
    distance = (state[..., :3] - target).square().sum(-1)
    tilt = 1 - state[..., 6].square()
    return 4 * distance + 0.1 * state[..., 3:6].square().sum(-1) + 0.5 * tilt + 0.02 * state[..., 10:].square().sum(-1)


def reference(tick):
    steps = (torch.arange(HORIZON, device=DEVICE) + tick) * DT
    return torch.stack((2 * torch.sin(steps), torch.sin(2 * steps), 1 + 0 * steps), -1)


def plan(state, nominal, tick):
    noise = SPREAD * torch.randn(HORIZON, SAMPLES, 4, device=DEVICE)
    targets = reference(tick)
    particles = state.expand(SAMPLES, -1)
    cost = torch.zeros(SAMPLES, device=DEVICE)
    for k in range(HORIZON):
        particles = dynamics(particles, nominal[k] + noise[k])
        cost = cost + stage_cost(particles, targets[k])
    weights = torch.softmax(-(cost - cost.min()) / TEMPERATURE, 0)
    return nominal + torch.einsum("s,hsa->ha", weights, noise), cost.min()


@torch.inference_mode()
def fly():
    torch.manual_seed(0)
    state = torch.zeros(1, 13, device=DEVICE)
    state[0, 6] = 1
    nominal = torch.full((HORIZON, 4), MASS * GRAVITY / 4, device=DEVICE)
    errors = torch.zeros(TICKS, device=DEVICE)
    for tick in range(TICKS):
        nominal, best = plan(state, nominal, tick)
        state = dynamics(state.expand(SAMPLES, -1), nominal[0].expand(SAMPLES, -1))[:1]
        nominal = torch.roll(nominal, -1, 0)
        errors[tick] = best
    print(f"mean best cost {errors.mean().item():.3f}, last {errors[-1].item():.3f}, radius {math.sqrt(5):.2f}")


if __name__ == "__main__":
    fly()
