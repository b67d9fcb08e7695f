"""Llama-style language model: RMSNorm, QK-norm, SwiGLU."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ON_CUDA = torch.cuda.is_available()


@dataclass
class ModelArgs:
    dim: int = 1024 if ON_CUDA else 32
    n_layers: int = 10 if ON_CUDA else 2
    n_heads: int = 16 if ON_CUDA else 2
    hidden: int = 2816 if ON_CUDA else 64
    vocab_size: int = 16384 if ON_CUDA else 128
    norm_eps: float = 1e-5
    max_seq_len: int = 1024 if ON_CUDA else 16
    batch: int = 8 if ON_CUDA else 2
    steps: int = 160 if ON_CUDA else 6


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class Attention(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.n_heads = args.n_heads
        self.head_dim = args.dim // args.n_heads
        self.wqkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)
        self.q_norm = RMSNorm(self.head_dim, args.norm_eps)
        self.k_norm = RMSNorm(self.head_dim, args.norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, self.n_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class TransformerBlock(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.attention_norm = RMSNorm(args.dim, args.norm_eps)
        self.attention = Attention(args)
        self.ffn_norm = RMSNorm(args.dim, args.norm_eps)
        self.w13 = nn.Linear(args.dim, 2 * args.hidden, bias=False)
        self.w2 = nn.Linear(args.hidden, args.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        gate, up = self.w13(self.ffn_norm(x)).chunk(2, dim=-1)
        return x + self.w2(F.silu(gate) * up)


class Transformer(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.embed = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(TransformerBlock(args) for _ in range(args.n_layers))
        self.norm = RMSNorm(args.dim, args.norm_eps)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        self.position = nn.Parameter(torch.randn(args.max_seq_len, args.dim) * 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def main() -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    args = ModelArgs()
    device = torch.device("cuda" if ON_CUDA else "cpu")
    model = Transformer(args).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = torch.randint(args.vocab_size, (args.batch * 16, args.max_seq_len + 1), device=device)
    for step in range(args.steps):
        batch = data[torch.randint(len(data), (args.batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 40 == 0 or step == args.steps - 1:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
