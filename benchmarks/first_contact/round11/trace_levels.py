"""Level normalisation of long seismic traces; the robust energy of a trace is computed by a Triton kernel."""
import argparse

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU-only installation
    triton = None

if triton is not None:

    @triton.jit
    def clipped_energy_kernel(x_ptr, out_ptr, n, stride, cap, BLOCK: tl.constexpr):
        """Sum of min(x^2, cap) over one trace."""
        row = tl.program_id(0)
        lane = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n, BLOCK):  # flaw: small-grid
            column = start + lane
            x = tl.load(x_ptr + row.to(tl.int64) * stride + column, mask=column < n, other=0.0)
            total += tl.minimum(x * x, cap)
        tl.store(out_ptr + row, tl.sum(total, axis=0))  # flaw: small-grid


def clipped_energy(x, cap):
    if not x.is_cuda:
        return x.square().clamp_(max=cap).sum(dim=1)
    rows, n = x.shape
    out = torch.zeros(rows, device=x.device, dtype=torch.float32)
    clipped_energy_kernel[(rows,)](x, out, n, x.stride(0), cap, BLOCK=2048, num_warps=8)  # flaw: small-grid
    return out


def normalise(x, cap):
    """Scale each trace to unit robust level, in place."""
    level = (clipped_energy(x, cap) / x.shape[1]).sqrt_()
    return x.mul_(level.clamp_(min=1e-8).reciprocal_()[:, None]), level


class Recorder:
    """Delivers records of all stations: noise with slowly changing gain and rare spikes."""

    def __init__(self, stations, samples, device):
        self.gen = torch.Generator(device).manual_seed(0)
        self.base = torch.randn(stations, samples, device=device, generator=self.gen)
        self.base[:, ::10_007] *= 30.0
        self.gain = torch.linspace(0.5, 2.0, stations, device=device)[:, None]
        self.buffer = torch.empty_like(self.base)

    def record(self, index):
        return torch.mul(self.base, self.gain * (1.0 + 0.1 * (index % 5)), out=self.buffer)


def window_peaks(x, window):
    """Largest absolute value of each window: (stations, windows)."""
    rows, n = x.shape
    low, high = x[:, :n // window * window].view(rows, -1, window).aminmax(dim=-1)
    return torch.maximum(high, -low)


def process(recorder, records, cap, window, threshold):
    events = levels = None
    for index in range(records):
        x, level = normalise(recorder.record(index), cap)
        peaks = window_peaks(x, window)
        hits = (peaks > threshold).sum(dim=1)
        events = hits if events is None else events + hits
        levels = level if levels is None else levels + level
    return events, levels / records


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--stations", type=int, default=24 if cuda else 3)
    ap.add_argument("--samples", type=int, default=24 * 1024 * 1024 if cuda else 30_000)
    ap.add_argument("--records", type=int, default=120 if cuda else 3)
    ap.add_argument("--cap", type=float, default=9.0)
    ap.add_argument("--window", type=int, default=4096 if cuda else 256)
    ap.add_argument("--threshold", type=float, default=12.0)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    recorder = Recorder(args.stations, args.samples, device)
    with torch.inference_mode():
        events, level = process(recorder, args.records, args.cap, args.window, args.threshold)
    print("events per station:", events.tolist()[:6])
    print("mean levels:", [round(v, 4) for v in level.tolist()[:6]])


if __name__ == "__main__":
    main()
