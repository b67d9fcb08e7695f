"""Value iteration for a batch of randomly drawn dense MDPs."""

import argparse

import torch


def build_mdp(states, actions, generator, device, dtype):
    logits = torch.randn(
        actions, states, states, generator=generator, device=device, dtype=dtype
    )
    transitions = torch.softmax(4 * logits, dim=-1)
    rewards = torch.rand(actions, states, 1, generator=generator, device=device, dtype=dtype)
    return transitions, rewards


def value_iteration(transitions, rewards, gamma, tolerance, max_sweeps):
    states = transitions.size(-1)
    value = torch.zeros(states, 1, device=transitions.device, dtype=transitions.dtype)
    sweeps = 0
    while sweeps < max_sweeps:
        q = torch.baddbmm(rewards, transitions, value.expand(len(rewards), -1, -1), alpha=gamma)
        new_value = q.amax(dim=0)
        delta = torch.dist(new_value, value, p=float("inf"))
        value = new_value
        sweeps += 1
        if delta.item() < tolerance:  # flaw: sync-in-step
            break
    return value, q.argmax(dim=0), sweeps


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=3072 if gpu else 32)
    parser.add_argument("--actions", type=int, default=4)
    parser.add_argument("--mdps", type=int, default=80 if gpu else 3)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--max-sweeps", type=int, default=1000)
    args = parser.parse_args()

    device = torch.device("cuda" if gpu else "cpu")
    torch.set_float32_matmul_precision("high")
    generator = torch.Generator(device=device).manual_seed(0)
    means = torch.zeros(args.mdps, device=device)
    total = 0
    with torch.inference_mode():
        for i in range(args.mdps):
            transitions, rewards = build_mdp(
                args.states, args.actions, generator, device, torch.float32
            )
            value, policy, sweeps = value_iteration(
                transitions, rewards, args.gamma, args.tolerance, args.max_sweeps
            )
            means[i] = value.mean()
            total += sweeps
    print(f"{args.mdps} mdps, {total} sweeps, mean value {means.mean().item():.3f}")


if __name__ == "__main__":
    main()
