import numpy as np
import torch
from torch import nn


def trials(count, channels, samples, classes, seed):
    """Band-limited sources, of which each class damps another one."""
    rng = np.random.default_rng(seed)
    intent = rng.integers(0, classes, count)
    sources = rng.standard_normal((count, samples, channels), dtype=np.float32)
    sources[:, :, :classes] *= 1.5
    sources[np.arange(count), :, intent] *= 0.6
    mixing = rng.standard_normal((channels, channels), dtype=np.float32) / channels**0.5
    return torch.from_numpy(sources @ mixing), torch.from_numpy(intent)


class SpatialFilters(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, filters))
        nn.init.orthogonal_(self.weight)

    def forward(self, eeg):
        return eeg @ self.weight


class Covariance(nn.Module):
    """Channels x channels for each trial, regularised."""

    def __init__(self, filters, shrink=0.05):
        super().__init__()
        self.shrink = shrink
        self.register_buffer("eye", torch.eye(filters))

    def forward(self, signal):
        samples = signal.shape[1]
        by_channel = signal.transpose(1, 2).contiguous()  # flaw: layout-churn
        covariance = torch.bmm(by_channel, signal) / samples
        return torch.lerp(covariance, self.eye, self.shrink)


class Triangle(nn.Module):
    def __init__(self, filters):
        super().__init__()
        rows, columns = torch.triu_indices(filters, filters)
        self.register_buffer("flat", rows * filters + columns)

    def forward(self, matrices):
        return matrices.flatten(1).index_select(1, self.flat)


class CovarianceNet(nn.Module):
    def __init__(self, channels, filters, classes):
        super().__init__()
        self.features = nn.Sequential(
            SpatialFilters(channels, filters),
            Covariance(filters),
            Triangle(filters),
        )
        self.head = nn.Sequential(
            nn.Linear(filters * (filters + 1) // 2, 128),
            nn.ReLU(),
            nn.Linear(128, classes),
        )

    def forward(self, eeg):
        return self.head(self.features(eeg))
