"""Lip reading: a convolutional encoder for each frame, then a recurrent net over the clip."""

import torch
import torch.nn as nn
import torch.nn.functional as F

use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")
BATCH, FRAMES, SIDE, WIDTH, STEPS = (16, 32, 88, 48, 80) if use_cuda else (2, 4, 24, 8, 3)
WORDS = 500


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(8, cout), nn.GroupNorm(8, cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


class FrameEncoder(nn.Sequential):
    def __init__(self, w):
        super().__init__(
            nn.Conv2d(1, w, 5, 2, 2, bias=False),
            nn.GroupNorm(8, w),
            nn.ReLU(inplace=True),
            Residual(w, w, 1),
            Residual(w, 2 * w, 2),
            Residual(2 * w, 4 * w, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )


class LipReader(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.encoder = FrameEncoder(w)
        self.temporal = nn.GRU(4 * w, 512 if use_cuda else 16, num_layers=2, batch_first=True, bidirectional=True)
        self.classify = nn.Linear(1024 if use_cuda else 32, WORDS)

    def forward(self, video):
        features = []  # flaw: python-loop-over-tensor
        for t in range(video.size(1)):  # flaw: python-loop-over-tensor
            features.append(self.encoder(video[:, t]))  # flaw: python-loop-over-tensor
        sequence = torch.stack(features, dim=1)  # flaw: python-loop-over-tensor
        output, _ = self.temporal(sequence)
        return self.classify(output.mean(1))


def random_crop_flip(video):
    top, left = torch.randint(0, 9, (2,)).tolist()
    video = video[..., top : top + SIDE, left : left + SIDE]
    return video.flip(-1) if torch.rand(()) < 0.5 else video


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    clips = torch.randint(0, 255, (BATCH * 12, FRAMES, 1, SIDE + 8, SIDE + 8), dtype=torch.uint8, device=device)
    words = torch.randint(0, WORDS, (len(clips),), device=device)
    model = LipReader(WIDTH).to(device)
    model.encoder.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=1e-2, fused=True)
    correct = torch.zeros((), device=device)
    for step in range(STEPS):
        pick = torch.randint(0, len(clips), (BATCH,), device=device)
        video = random_crop_flip(clips[pick]).to(torch.bfloat16).sub_(107).div_(42)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(video)
            loss = F.cross_entropy(logits, words[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        correct += (logits.detach().argmax(-1) == words[pick]).sum()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print("accuracy", correct.item() / (STEPS * BATCH))


if __name__ == "__main__":
    main()
