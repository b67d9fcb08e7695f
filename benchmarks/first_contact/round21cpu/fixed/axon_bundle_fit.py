# %% [markdown]
# # Fitting channel densities of an axon bundle
# Hodgkin-Huxley membranes (with softened opening rates), one for each of 96,000 fibres. The two maximal conductances of each
# bundle (a group of fibres) are fitted through a few steps of the membrane equations.

# %%
import torch
import torch.nn.functional as F

torch.manual_seed(1952)
BUNDLES, FIBRES = 96, 1000
SUBSTEPS = 3
DT = 0.02
E_NA, E_K, E_LEAK, G_LEAK = 50.0, -77.0, -54.4, 0.3


# %%
@torch.compile
def membrane(v, m, h, n, g_na, g_k, drive):
    a_m = F.softplus((v + 40.0) / 10)
    b_m = 4.0 * torch.exp(-(v + 65.0) / 18)
    a_h = 0.07 * torch.exp(-(v + 65.0) / 20)
    b_h = 1 / (1 + torch.exp(-(v + 35.0) / 10))
    a_n = 0.1 * F.softplus((v + 55.0) / 10)
    b_n = 0.125 * torch.exp(-(v + 65.0) / 80)
    sodium = g_na * m**3 * h * (v - E_NA)
    potassium = g_k * n**4 * (v - E_K)
    current = drive - sodium - potassium - G_LEAK * (v - E_LEAK)
    m = m + DT * (a_m * (1 - m) - b_m * m)
    h = h + DT * (a_h * (1 - h) - b_h * h)
    n = n + DT * (a_n * (1 - n) - b_n * n)
    return v + DT * current, m, h, n


def simulate(state, g_na, g_k, drive):
    for _ in range(SUBSTEPS):
        state = membrane(*state, g_na, g_k, drive)
    return state[0]


# %%
def recordings(count):
    """Starting states, drives and the voltages that were measured a moment later."""
    true_na = 90 + 60 * torch.rand(BUNDLES, 1)
    true_k = 25 + 20 * torch.rand(BUNDLES, 1)
    for _ in range(count):
        v = -70 + 45 * torch.rand(BUNDLES, FIBRES)
        m, h, n = 0.2 + 0.6 * torch.rand(3, BUNDLES, FIBRES)
        drive = 10 * torch.rand(BUNDLES, FIBRES)
        state = (v, m, h, n)
        with torch.no_grad():
            measured = simulate(state, true_na, true_k, drive)
        yield state, drive, measured


trials = list(recordings(6))

# %%
log_na = torch.full((BUNDLES, 1), 4.6, requires_grad=True)
log_k = torch.full((BUNDLES, 1), 3.4, requires_grad=True)
optimizer = torch.optim.Adam([log_na, log_k], lr=0.004, fused=True)

STEPS, EVERY = 1500, 150
misfit_sum = torch.zeros(())

# %%
for step in range(1, STEPS + 1):
    state, drive, measured = trials[step % len(trials)]
    modelled = simulate(state, log_na.exp(), log_k.exp(), drive)
    misfit = F.mse_loss(modelled, measured)
    optimizer.zero_grad()
    misfit.backward()
    optimizer.step()
    misfit_sum += misfit.detach()
    if step % EVERY == 0:
        print(f"{step:5d}   misfit {misfit_sum.item() / EVERY:.6f}")
        misfit_sum.zero_()

# %%
print("sodium  ", " ".join(f"{g:6.1f}" for g in log_na.detach().exp()[:6, 0].tolist()))
print("potassium", " ".join(f"{g:5.1f}" for g in log_k.detach().exp()[:6, 0].tolist()))
