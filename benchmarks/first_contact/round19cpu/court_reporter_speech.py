# %% [markdown]
# A speech encoder for court recordings: frames in, one of 32 phones per frame out.
# Queries have several heads, keys and values are shared by all of them.

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)
gen = torch.Generator().manual_seed(21)
PHONES, BANDS, LENGTH, WIDTH, HEADS = 32, 24, 320, 64, 4

# %% the recordings
prints = torch.randn(PHONES, BANDS, generator=gen)


def record(count):
    spoken = torch.randint(PHONES, (count, LENGTH // 8), generator=gen).repeat_interleave(8, 1)
    sound = prints[spoken] + 1.2 * torch.randn(count, LENGTH, BANDS, generator=gen)
    return sound, spoken


sounds, phones = record(160)


# %% the model
class SharedKeys(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.ask = nn.Linear(WIDTH, WIDTH)
        self.memory = nn.Linear(WIDTH, 2 * self.size)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.ask(x).view(b, t, HEADS, self.size).transpose(1, 2)
        k, v = self.memory(x).view(b, t, 2, 1, self.size).permute(2, 0, 3, 1, 4)
        heard = F.scaled_dot_product_attention(q, k, v)  # flaw: slow-attention-kernel
        return self.out(heard.transpose(1, 2).reshape(b, t, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = SharedKeys()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 128), nn.ReLU(inplace=True), nn.Linear(128, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.ff(self.n2(x))


class Reporter(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.inward = nn.Linear(BANDS, WIDTH)
        self.place = nn.Parameter(0.05 * torch.randn(LENGTH, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(depth)))
        self.phone = nn.Linear(WIDTH, PHONES)

    def forward(self, sound):
        return self.phone(self.layers(self.inward(sound) + self.place))


# %% training
net = Reporter()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
curve = torch.zeros(320)
for step in range(len(curve)):
    rows = torch.randint(len(sounds), (4,), generator=gen)
    logits = net(sounds[rows])
    loss = F.cross_entropy(logits.flatten(0, 1), phones[rows].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    curve[step] = loss.detach()
    if step % 80 == 79:
        print("step", step + 1, "loss", round(curve[step - 79 : step + 1].mean().item(), 4))

# %% how good is it
with torch.inference_mode():
    sound, spoken = record(16)
    print("frames right:", round((net(sound).argmax(-1) == spoken).float().mean().item(), 4))
