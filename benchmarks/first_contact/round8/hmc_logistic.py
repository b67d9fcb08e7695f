"""Many HMC chains at once for Bayesian logistic regression, with split R-hat at the end."""
import torch

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.set_float32_matmul_precision("high")


class LogisticPosterior:
    def __init__(self, x, y, prior_precision):
        self.x, self.xt, self.y = x, x.t().contiguous(), y.unsqueeze(1)
        self.prior_precision = prior_precision
        self.xty = self.xt @ self.y

    def gradient(self, theta):
        """Gradient of the negative log density; theta has one chain per column."""
        residual = torch.sigmoid_(self.x @ theta)
        grad = self.xt @ residual
        return grad.sub_(self.xty).add_(theta, alpha=self.prior_precision)

    def energy(self, theta):
        logits = self.x @ theta
        fit = torch.nn.functional.softplus(logits).sum(0) - (self.xty * theta).sum(0)
        return fit + 0.5 * self.prior_precision * theta.square().sum(0)


def hmc_step(post, theta, energy, step, n_leap):
    mom = torch.randn_like(theta)
    start = energy + 0.5 * mom.square().sum(0)
    q = theta
    mom = mom - 0.5 * step * post.gradient(q)
    for i in range(n_leap):
        q = torch.add(q, mom, alpha=step)
        scale = step if i + 1 < n_leap else 0.5 * step
        mom.sub_(post.gradient(q), alpha=scale)
    new = post.energy(q)
    accept = torch.rand_like(new).log_() < start - new - 0.5 * mom.square().sum(0)
    return torch.where(accept, q, theta), torch.where(accept, new, energy), accept


def split_rhat(draws):
    half = draws.shape[0] // 2
    parts = torch.cat([draws[:half], draws[half : 2 * half]], dim=2)
    within = parts.var(0).mean(1)
    between = parts.mean(0).var(1)
    return ((half - 1) / half + between / within).sqrt()


@torch.inference_mode()
def main():
    n, d, chains = (65536, 1024, 512) if cuda else (128, 8, 6)
    samples, warm, n_leap = (500, 20, 10) if cuda else (10, 4, 3)
    step = 0.004 if cuda else 0.05
    tracked = 32 if cuda else 4
    torch.manual_seed(0)
    x = torch.randn(n, d, device=device)
    truth = torch.randn(d, device=device) / d**0.5
    y = (torch.rand(n, device=device) < torch.sigmoid(x @ truth)).float()
    post = LogisticPosterior(x, y, prior_precision=1.0)

    theta = 0.1 * torch.randn(d, chains, device=device)
    energy = post.energy(theta)
    draws = torch.empty(samples, tracked, chains, device=device)
    accepted = torch.zeros((), device=device)
    for i in range(-warm, samples):
        theta, energy, ok = hmc_step(post, theta, energy, step, n_leap)
        if i >= 0:
            draws[i] = theta[:tracked]
            accepted += ok.float().mean()
        if i % 25 == 0:
            print(f"iteration {i}: energy {energy.mean().item():.1f}")
    rhat = split_rhat(draws)
    print(f"acceptance {accepted.item() / samples:.3f}  worst r-hat {rhat.max().item():.3f}")
    print(f"error {(draws.mean((0, 2)) - truth[:tracked]).norm().item():.4f}")


if __name__ == "__main__":
    main()
