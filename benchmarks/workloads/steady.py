"""Nothing to gain: the same products every step. What a measurement says of no change is seen on it.

``REPEATS`` is what the benchmark edits to plant a slowdown of a known size.
"""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
REPEATS = 100
WIDTH = 2048 if device == "cuda" else 160


def main():
    torch.manual_seed(0)
    a = torch.randn(WIDTH, WIDTH, device=device) / WIDTH**0.5
    weight = torch.nn.Parameter(torch.eye(WIDTH, device=device))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    for _ in range(4000):
        with torch.no_grad():
            x = a
            for _ in range(REPEATS):
                x = a @ x
        loss = (weight @ x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
