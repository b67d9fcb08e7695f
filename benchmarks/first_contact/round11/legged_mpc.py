"""Model-predictive control of a legged robot with a learned model: many futures, best one is followed."""
import argparse

import torch
from torch import nn


class LearnedModel(nn.Module):
    """State and action to the change of state; bfloat16, bias and ReLU in the epilogue of the product."""

    def __init__(self, state, action, hidden):
        super().__init__()
        sizes = (state + action, hidden, hidden, state)
        self.weights = nn.ParameterList(
            torch.randn(a, b, dtype=torch.float32).div_(a ** 0.5).to(torch.bfloat16)
            for a, b in zip(sizes, sizes[1:]))
        self.biases = nn.ParameterList(torch.zeros(b, dtype=torch.bfloat16) for b in sizes[1:])

    def forward(self, inputs):
        (w1, w2, w3), (b1, b2, b3) = self.weights, self.biases
        h = torch._addmm_activation(b1, inputs, w1)
        h = torch._addmm_activation(b2, h, w2)
        return torch.addmm(b3, h, w3)


class Controller:
    """Cross-entropy method with a fixed number of rounds."""

    def __init__(self, model, args, device):
        self.model, self.a, self.device = model, args, device
        self.mean = torch.zeros(args.horizon, args.action, device=device)
        self.inputs = torch.empty(args.futures, args.state + args.action, dtype=torch.bfloat16, device=device)

    def returns(self, state, actions):
        """Sum over time of the forward speed (first component) minus effort, for each future."""
        inputs = self.inputs
        inputs[:, :self.a.state] = state
        total = -0.01 * actions.square().sum((0, 2))
        for action in actions:
            inputs[:, self.a.state:] = action
            inputs[:, :self.a.state] += self.model(inputs)
            total += inputs[:, 0]
        return total

    def decide(self, state):
        noise = torch.randn(self.a.horizon, self.a.futures, self.a.action, device=self.device)
        actions = self.mean.unsqueeze(1) + 0.5 * noise
        best = self.returns(state, actions).topk(self.a.elites).indices
        self.mean = actions[:, best].mean(1)
        return self.mean[0]


def simulate(state, action, drift):
    """Stands for the robot."""
    return 0.95 * state + 0.1 * (action @ drift)


@torch.inference_mode()
def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--futures", type=int, default=65536 if gpu else 64)
    parser.add_argument("--horizon", type=int, default=16 if gpu else 4)
    parser.add_argument("--state", type=int, default=48 if gpu else 12)
    parser.add_argument("--action", type=int, default=16 if gpu else 4)
    parser.add_argument("--hidden", type=int, default=2048 if gpu else 16)
    parser.add_argument("--elites", type=int, default=1024 if gpu else 8)
    parser.add_argument("--ticks", type=int, default=150 if gpu else 4)
    args = parser.parse_args()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(150)
    model = LearnedModel(args.state, args.action, args.hidden).to(device)
    controller = Controller(model, args, device)
    drift = torch.randn(args.action, args.state, device=device) * 0.3
    state = torch.zeros(args.state, device=device)
    speeds = torch.zeros(args.ticks, device=device)
    for tick in range(args.ticks):
        state = simulate(state, controller.decide(state), drift)
        speeds[tick] = state[0]
    print(f"mean speed {speeds.mean().item():.4f}, last {speeds[-1].item():.4f}")


if __name__ == "__main__":
    main()
