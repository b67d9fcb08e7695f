"""Data and model of the photovoltaic forecast (see pv_forecast.py)."""
import numpy as np
import torch
from transformers import PatchTSTConfig, PatchTSTForPrediction

QUARTERS_A_DAY = 96


def synthetic_plants(plants, days, seed):
    """Power of each plant every quarter of an hour, with clouds and gaps."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * QUARTERS_A_DAY) / 4
    sun = np.clip(np.sin((hours % 24 - 6) / 12 * np.pi), 0, None)
    power = []
    for _ in range(plants):
        clouds = np.convolve(rng.random(len(hours)), np.ones(9) / 9, mode="same")
        series = rng.uniform(0.5, 5) * sun * clouds
        series[rng.random(len(hours)) < 0.01] = np.nan
        power.append(series)
    return np.stack(power, axis=1).astype(np.float32)


def despiked(window, width=15, limit=3.0):
    """A Hampel filter: what is far from the median of its neighbours becomes that median."""
    padded = np.pad(window, ((width // 2, width // 2), (0, 0)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0)
    middle = np.median(around, axis=-1)
    spread = np.median(np.abs(around - middle[..., None]), axis=-1) + 1e-3
    return np.where(np.abs(window - middle) > limit * 1.48 * spread, middle, window)


class Windows(torch.utils.data.Dataset):
    """One window of context and horizon for each item, with the gaps filled."""

    def __init__(self, power, context, horizon, stride=4):
        self.power, self.context, self.horizon = power, context, horizon
        self.starts = np.arange(0, len(power) - context - horizon, stride)
        self.scale = np.nanstd(power, axis=0) + 1e-3

    def __len__(self):
        return len(self.starts)

    def filled(self, series):
        known = ~np.isnan(series)
        places = np.arange(len(series))
        return np.interp(places, places[known], series[known])

    def __getitem__(self, index):
        start = self.starts[index]
        window = self.power[start : start + self.context + self.horizon] / self.scale
        window = np.stack([self.filled(column) for column in window.T], axis=1)
        window = despiked(window)
        spectrum = np.fft.rfft(window[: self.context], axis=0)
        spectrum[self.context // 3 :] = 0
        past = np.fft.irfft(spectrum, n=self.context, axis=0)
        return {
            "past_values": torch.from_numpy(past.astype(np.float32)),
            "future_values": torch.from_numpy(window[self.context :].astype(np.float32)),
        }


def build_model(channels, context, horizon, **sizes):
    config = PatchTSTConfig(
        num_input_channels=channels,
        context_length=context,
        prediction_length=horizon,
        patch_length=8,
        patch_stride=8,
        scaling="std",
        loss="mse",
        attention_dropout=0.0,
        norm_type="layernorm",
        attn_implementation="sdpa",
        **sizes,
    )
    return PatchTSTForPrediction(config)
