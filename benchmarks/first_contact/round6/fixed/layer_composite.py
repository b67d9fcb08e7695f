"""Composites depth-sorted layers of every pixel, front to back, with a Triton kernel."""

import os

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")

if triton is not None:

    @triton.jit
    def composite_kernel(alpha, red, green, blue, out, pixels, layers, BLOCK: tl.constexpr):
        p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = p < pixels
        left = tl.full((BLOCK,), 1.0, tl.float32)
        r = tl.zeros((BLOCK,), tl.float32)
        g = tl.zeros((BLOCK,), tl.float32)
        b = tl.zeros((BLOCK,), tl.float32)
        for layer in range(layers):
            at = layer * pixels + p
            a = tl.load(alpha + at, mask=inside, other=0.0)
            w = a * left
            r += w * tl.load(red + at, mask=inside, other=0.0)
            g += w * tl.load(green + at, mask=inside, other=0.0)
            b += w * tl.load(blue + at, mask=inside, other=0.0)
            left *= 1.0 - a
        tl.store(out + p, r, mask=inside)
        tl.store(out + pixels + p, g, mask=inside)
        tl.store(out + 2 * pixels + p, b, mask=inside)


def composite_reference(planes):
    alpha = planes[0]
    left = torch.cumprod(torch.cat([torch.ones_like(alpha[:1]), 1 - alpha[:-1]], 0), 0)
    return (planes[1:] * (alpha * left)).sum(1)


def composite(planes):
    if not CUDA or triton is None:
        return composite_reference(planes)
    layers, pixels = planes.shape[1:]
    out = torch.empty(3, pixels, device=planes.device)
    composite_kernel[(triton.cdiv(pixels, 1024),)](*planes, out, pixels, layers, BLOCK=1024, num_warps=8)
    return out


def sorted_layers(pixels, layers, seed):
    """Alpha and colour of each layer; a rasteriser would write them in this order."""
    g = torch.Generator(device=DEVICE).manual_seed(seed)
    planes = torch.rand(4, pixels, layers, device=DEVICE, generator=g).transpose(1, 2).contiguous()
    planes[0] *= 0.1
    return planes


def main():
    pixels, layers, views = (64, 8, 30) if os.environ.get("SMALL") else (1280 * 720, 96, 150)
    scenes = [sorted_layers(pixels, layers, s) for s in range(3)]
    film = torch.zeros(3, pixels, device=DEVICE)
    for view in range(views):
        for planes in scenes:
            film.lerp_(composite(planes), 0.1)
    print("views", views, "mean", [round(v, 4) for v in film.mean(1).tolist()])


if __name__ == "__main__":
    main()
