"""Detect materials in hyperspectral scenes: per-pixel normalisation, then matched filters."""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BANDS, ROWS, COLS = (224, 2048, 1024) if DEVICE.type == "cuda" else (32, 16, 16)
SCENES = 400 if DEVICE.type == "cuda" else 2
MATERIALS = 16

if triton is not None:

    @triton.jit
    def snv_kernel(x_ptr, y_ptr, bands, pixels, BLOCK: tl.constexpr, TILE: tl.constexpr):
        pixel = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
        band = tl.arange(0, BLOCK)[:, None]
        inside = (band < bands) & (pixel < pixels)
        x = tl.load(x_ptr + band * pixels + pixel, mask=inside, other=0.0).to(tl.float32)
        mean = tl.sum(x, 0) / bands
        centred = tl.where(inside, x - mean[None, :], 0.0)
        deviation = tl.sqrt(tl.sum(centred * centred, 0) / (bands - 1) + 1e-6)
        y = (centred / deviation[None, :]).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + band * pixels + pixel, y, mask=inside)


def standard_normal_variate(cube):
    """Subtract each pixel's mean over the bands and divide by its deviation; cube is (bands, pixels)."""
    if triton is None or not cube.is_cuda:
        deviation, mean = torch.std_mean(cube.float(), 0, keepdim=True)
        return ((cube - mean) / (deviation.square() + 1e-6).sqrt()).to(cube.dtype)
    bands, pixels = cube.shape
    out = torch.empty_like(cube)
    block = triton.next_power_of_2(bands)
    snv_kernel[(triton.cdiv(pixels, 32),)](cube, out, bands, pixels, BLOCK=block, TILE=32, num_warps=8)
    return out


class MatchedFilters:
    """Whitened matched filters, one per material."""

    def __init__(self, signatures, background):
        covariance = torch.cov(background.float()) + 1e-2 * torch.eye(len(background), device=DEVICE)
        whitened = torch.linalg.solve(covariance, signatures.float().T)
        scale = (signatures.float().T * whitened).sum(0)
        self.filters = (whitened / scale).T.contiguous()

    def __call__(self, spectra):
        return self.filters.to(spectra.dtype) @ spectra


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    scenes = torch.rand(3, BANDS, ROWS * COLS, device=DEVICE, dtype=torch.bfloat16)
    signatures = torch.rand(MATERIALS, BANDS, device=DEVICE)
    detect = MatchedFilters(signatures - signatures.mean(1, keepdim=True), scenes[0, :, : 8 * COLS])
    best = torch.zeros(SCENES, MATERIALS, device=DEVICE)
    for k in range(SCENES):
        spectra = standard_normal_variate(scenes[k % 3])
        best[k] = detect(spectra).amax(1).float()
    for k, score in enumerate(best[:3].mean(1).tolist()):
        print(f"scene {k}: mean of the best scores {score:.3f}")


if __name__ == "__main__":
    main()
