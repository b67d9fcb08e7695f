"""What can be set."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OptimizerConfig:
    lr: float = 1e-3
    weight_decay: float = 0.01
    fused: bool = True


@dataclass(frozen=True)
class Config:
    batch_size: int = 256
    workers: int = 4
    channels: int = 512
    depth: int = 6
    keywords: int = 35
    steps: int = 4000
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
