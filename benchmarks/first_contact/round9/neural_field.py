"""Wilson-Cowan dynamics on a sheet of randomly placed neurons, many stimulation trials at once."""
import torch


class CorticalSheet:
    def __init__(self, neurons, trials, device, substeps=12, dt=0.1):
        self.device = device
        self.pos = torch.rand(neurons, 2, device=device)
        self.rate = torch.zeros(neurons, trials, device=device)
        self.centre = torch.rand(trials, 2, device=device)
        self.substeps = substeps
        self.dt = dt
        self.sigma_exc, self.sigma_inh = 0.03, 0.09
        self.gain_exc, self.gain_inh = 1.6, 1.2

    def lateral_weights(self):
        """Difference of Gaussians over the distance, rows normalised."""
        d2 = torch.cdist(self.pos, self.pos).square_()
        exc = torch.exp(d2 * (-0.5 / self.sigma_exc**2))
        inh = torch.exp(d2 * (-0.5 / self.sigma_inh**2))
        exc /= exc.sum(1, keepdim=True)
        inh /= inh.sum(1, keepdim=True)
        return exc.mul_(self.gain_exc).sub_(inh, alpha=self.gain_inh)

    def stimulus(self, offset):
        moving = self.centre + offset
        return torch.exp(torch.cdist(self.pos, moving).square() * (-0.5 / 0.05**2))

    def advance(self, offset):
        drive = self.stimulus(offset)
        weights = self.lateral_weights()  # flaw: constant-rebuilt
        for _ in range(self.substeps):
            total = torch.addmm(drive, weights, self.rate)
            self.rate.lerp_(torch.sigmoid(total.sub_(0.4).mul_(4.0)), self.dt)
        return self.rate


class Recorder:
    def __init__(self, every):
        self.every = every
        self.trace = []

    def __call__(self, step, rate):
        self.trace.append(rate.mean(0))
        if (step + 1) % self.every == 0:
            recent = torch.stack(self.trace[-self.every :]).mean()
            print(f"t={step + 1}: mean rate {recent.item():.4f}")


@torch.inference_mode()
def run():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    steps = 400 if cuda else 6
    sheet = CorticalSheet(14336 if cuda else 128, 256 if cuda else 4, device)
    recorder = Recorder(every=100 if cuda else 3)
    angle = torch.linspace(0, 6.28, steps, device=device)
    path = 0.1 * torch.stack([angle.cos(), angle.sin()], dim=1)
    for step in range(steps):
        recorder(step, sheet.advance(path[step]))
    print("synchrony", torch.stack(recorder.trace).std(0).mean().item())


if __name__ == "__main__":
    run()
