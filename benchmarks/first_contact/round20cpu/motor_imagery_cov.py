"""Brain-computer interface, offline replay: tells imagined movements from covariances of filtered channels."""
import math
from typing import Iterator, NamedTuple

import torch

CHANNELS, SAMPLES, COMPONENTS, MOVEMENTS = 64, 1536, 48, 4
TRIALS, AT_ONCE = 19200, 40


class Bank(NamedTuple):
    """Spatial filters and the mean covariance of each movement."""

    filters: torch.Tensor
    means: torch.Tensor


def calibrated(generator: torch.Generator) -> Bank:
    filters, _ = torch.linalg.qr(torch.randn(CHANNELS, COMPONENTS, generator=generator))
    strength = 0.6 + torch.rand(MOVEMENTS, COMPONENTS, generator=generator)
    return Bank(filters.T.contiguous(), torch.diag_embed(strength / strength.mean(1, keepdim=True)))


def recordings(generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Blocks of trials, as the amplifier's files hold them; a few blocks are replayed again and again."""
    blocks = torch.randn(8, AT_ONCE, CHANNELS, SAMPLES, generator=generator)
    blocks *= 0.4 + 1.2 * torch.rand(8, AT_ONCE, CHANNELS, 1, generator=generator)
    for number in range(TRIALS // AT_ONCE):
        yield blocks[number % len(blocks)]


def covariance(sources: torch.Tensor) -> torch.Tensor:
    centred = sources - sources.mean(2, keepdim=True)
    by_time = centred.mT.contiguous()  # flaw: layout-churn
    return torch.bmm(centred, by_time) / (SAMPLES - 1)


def normalised(cov: torch.Tensor) -> torch.Tensor:
    power = cov.diagonal(dim1=1, dim2=2).mean(1)
    return cov / power[:, None, None]


def distances(cov: torch.Tensor, means: torch.Tensor) -> torch.Tensor:
    return torch.cdist(cov.flatten(1), means.flatten(1))


def decide(bank: Bank, block: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sources = bank.filters @ block
    far = distances(normalised(covariance(sources)), bank.means)
    sure = torch.softmax(-far, 1).amax(1)
    return far.argmin(1), sure


def main() -> None:
    generator = torch.Generator().manual_seed(16)
    bank = calibrated(generator)
    votes = torch.zeros(MOVEMENTS, dtype=torch.long)
    certainty = torch.zeros(())
    with torch.inference_mode():
        for number, block in enumerate(recordings(generator), 1):
            movement, sure = decide(bank, block)
            votes += movement.bincount(minlength=MOVEMENTS)
            certainty += sure.mean()
            if number % 64 == 0:
                print(f"{number * AT_ONCE} trials, votes {votes.tolist()}, certainty {certainty / number:.4f}")
    share = votes / votes.sum()
    spread = -(share * share.clamp_min(1e-9).log()).sum() / math.log(MOVEMENTS)
    print(f"evenness of the votes {spread:.3f}")


if __name__ == "__main__":
    main()
