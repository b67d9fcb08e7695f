"""Template matching of seismic records: correlate the traces of stations with known events."""
import collections

import torch

Detection = collections.namedtuple("Detection", "template score lag")


def linear_length(n_trace, n_template):
    """Length of the transform for a correlation without wrap-around."""
    n = n_trace + n_template - 1
    while True:
        rest = n
        for factor in (2, 3, 5, 7):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


class Matcher:
    def __init__(self, templates, n_trace):
        self.n_template = templates.shape[1]
        self.n_trace = n_trace
        self.n = linear_length(n_trace, self.n_template)
        scaled = templates / torch.linalg.vector_norm(templates, dim=1, keepdim=True)
        self.spectra = torch.fft.rfft(scaled, self.n).conj()

    def correlate(self, traces):
        """For each template, the correlation at every lag at which the template fits (yields one by one)."""
        spectrum = torch.fft.rfft(traces, self.n)
        for template in self.spectra:
            full = torch.fft.irfft(spectrum * template, self.n)
            yield full[:, :self.n_trace - self.n_template + 1]

    def match(self, traces):
        found = [correlation.max(1) for correlation in self.correlate(traces)]
        scores = torch.stack([f.values for f in found])
        lags = torch.stack([f.indices for f in found])
        best = scores.argmax(0, keepdim=True)
        return Detection(best[0], scores.gather(0, best)[0], lags.gather(0, best)[0])


def synthetic_events(n_templates, n_template, gen, device):
    time = torch.arange(n_template, device=device) / n_template
    pitch = 20 + 60 * torch.rand(n_templates, 1, generator=gen, device=device)
    return torch.exp(-6 * time) * torch.sin(2 * torch.pi * pitch * time)


def record(templates, stations, n_trace, gen):
    """Noise with one event per station, at a different time in each."""
    device = templates.device
    traces = 0.3 * torch.randn(stations, n_trace, generator=gen, device=device)
    n_template = templates.shape[1]
    which = torch.randint(0, len(templates), (stations,), generator=gen, device=device)
    start = torch.randint(0, n_trace - n_template, (stations,), generator=gen, device=device)
    index = start[:, None] + torch.arange(n_template, device=device)
    traces.scatter_add_(1, index, templates[which])
    return traces, which


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    stations, n_trace, n_template, n_templates, hours = (
        (768, 40000, 4096, 6, 120) if gpu else (4, 900, 100, 3, 3))
    gen = torch.Generator(device).manual_seed(80)
    templates = synthetic_events(n_templates, n_template, gen, device)
    archive = [record(templates, stations, n_trace, gen) for _ in range(4)]
    matcher = Matcher(templates, n_trace)
    right = torch.zeros((), device=device)
    level = torch.zeros((), device=device)
    for hour in range(hours):
        traces, truth = archive[hour % len(archive)]
        detection = matcher.match(traces)
        right += (detection.template == truth).float().mean()
        level += detection.score.mean()
    print(f"identified {100 * right.item() / hours:.2f} %, mean score {level.item() / hours:.4f}")


if __name__ == "__main__":
    main()
