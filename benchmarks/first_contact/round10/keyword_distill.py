"""Distil a large keyword-spotting network into a smaller one (spectrograms in memory)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

MELS, FRAMES = (64, 96) if CUDA else (16, 16)
TEACHER, STUDENT = (512, 256) if CUDA else (16, 8)
WORDS = 40
CLIPS = 4096 if CUDA else 16
BATCH = 192 if CUDA else 4
STEPS = 300 if CUDA else 5
TEMPERATURE, MIX = 2.0, 0.7


def conv_block(n_in, n_out, stride=1):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU(inplace=True),
    )


def keyword_net(width):
    return nn.Sequential(
        conv_block(8, width // 4),
        conv_block(width // 4, width // 2, stride=2),
        conv_block(width // 2, width // 2),
        conv_block(width // 2, width, stride=2),
        conv_block(width, width),
        conv_block(width, width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, WORDS),
    )


def distillation_loss(student, teacher, labels):
    soft = F.kl_div(
        F.log_softmax(student / TEMPERATURE, dim=-1),
        F.log_softmax(teacher / TEMPERATURE, dim=-1),
        reduction="batchmean",
        log_target=True,
    )
    hard = F.cross_entropy(student, labels)
    return MIX * TEMPERATURE**2 * soft + (1 - MIX) * hard


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    dtype = torch.bfloat16
    clips = torch.randn(CLIPS, 8, MELS, FRAMES, device=device, dtype=dtype)
    clips = clips.to(memory_format=torch.channels_last)
    words = torch.randint(WORDS, (CLIPS,), device=device)

    teacher = keyword_net(TEACHER).to(device, dtype, memory_format=torch.channels_last)
    teacher.eval().requires_grad_(False)
    student = keyword_net(STUDENT).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        student.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True
    )
    right = torch.zeros((), device=device)
    for step in range(1, STEPS + 1):
        start = (step - 1) * BATCH % (CLIPS - BATCH)
        x, y = clips[start : start + BATCH], words[start : start + BATCH]
        x = x + 0.1 * torch.randn_like(x)
        with torch.no_grad():
            guide = teacher(x).float()
        with torch.autocast(device.type, dtype=dtype):
            logits = student(x)
        loss = distillation_loss(logits.float(), guide, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == guide.argmax(1)).sum()
        if step % 35 == 0 or step == STEPS:
            agree = right.item() / (BATCH * step)
            print(f"step {step}: loss {loss.item():.4f}, agreement {agree:.3f}")


if __name__ == "__main__":
    main()
