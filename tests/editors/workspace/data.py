import math
import time
from contextlib import suppress
from pathlib import Path

import torch
from torch.utils.data import Dataset


class Numbers(Dataset):
    """Rows computed one number at a time, as slowly as decoding a picture would be. Most of a step.
    They have noise, or the fix would be to make them once."""

    def __init__(self) -> None:
        while Path("downloading").exists():
            with suppress(OSError), Path("downloading").open("r+") as file:
                file.write("waiting")
            time.sleep(0.05)

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = [math.fsum(map(math.sin, range(first, first + 32))) for first in range(index, index + 256)]
        return torch.tensor(row) + 0.01 * torch.randn(256), index % 10
