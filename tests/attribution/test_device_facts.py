"""Memory, marks, rooflines, launch shapes and tensor cores.

The runs are built by hand: there is no GPU here (see tests/kineto.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, MAIN, KinetoRun, approx, at_line
from warpline.attribution.kernels import tensor_cores
from warpline.attribution.peaks import peaks_of
from warpline.view.memory import holders
from warpline.wire.facts import MeasuredPeaks
from warpline.wire.run import DeviceFacts, Facts


def test_memory_at_the_peak_and_kept(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 3000, steps=3)
    for step in range(3):
        at, address = 1000.0 * step, 1000 * step
        held = step * 64
        run.line(at, 10)
        run.memory(at + 1, 512, address + 1, 4096 + held + 512)
        run.line(at + 10, 11)
        run.memory(at + 11, 1024, address + 2, 4096 + held + 1536)  # the peak
        run.memory(at + 20, -512, address + 1, 4096 + held + 1024)
        run.memory(at + 21, -1024, address + 2, 4096 + held)
        run.line(at + 30, 12)
        run.memory(at + 31, 64, address + 3, 4096 + held + 64)  # never freed
    profile = run.profile()
    assert at_line(profile, 10).memory_bytes == 512
    assert at_line(profile, 11).memory_bytes == 1024
    assert at_line(profile, 12).memory_bytes == 128  # of the two steps before the last
    assert at_line(profile, 12).kept_bytes == 64
    assert at_line(profile, 11).kept_bytes == 0
    assert profile.totals["peak_bytes"] == 4096 + 128 + 1536


def test_calls_of_the_allocator_into_the_driver_stand_at_their_lines(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 2000, steps=2)
    for at in (0.0, 1000.0):
        run.line(at, 10)
        run.op("aten::empty", at + 10, 200)
        run.call("cudaMalloc", at + 20, 150)
        run.complete("cuda_driver", "cuMemAlloc_v2", (at + 30, 100), (MAIN, MAIN), correlation=0)
        run.line(at + 300, 11)
        run.call("cudaFree", at + 310, 100)
        run.call("cudaMemcpyAsync", at + 450, 20)
    run.line(1600, 12)
    run.call("cudaHostAlloc", 1610, 60)
    run.kernel(1700, 100, launched=1690)
    profile = run.profile()
    found = {cost.line: (cost.allocator_calls, cost.allocator_ms) for cost in profile.lines}
    assert found == {10: (1, approx(0.15)), 11: (1, approx(0.1)), 12: (0.5, approx(0.03))}
    assert profile.totals["allocator_calls"] == 2.5
    said = [one for one in holders(profile).said if "the driver 2.5 times a step" in one]
    assert len(said) == 1 and said[0].endswith(":10")


def test_marks_have_their_share_of_the_step(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, timed_us=500)
    run.line(0, 10)
    run.mark("attention", 100, 250)
    run.mark("nvtx:data:load", 400, 100)
    run.mark("Optimizer.step#SGD.step", 600, 100)
    run.kernel(200, 50, launched=150)
    run.kernel(600, 70, launched=550)
    profile = run.profile()
    attention, load = profile.marks
    assert (attention.name, attention.share, attention.wall_ms) == ("attention", approx(0.25), approx(0.125))
    assert attention.device_ms == approx(0.05)
    assert (load.name, load.domain, load.count) == ("load", "data", 1)


def test_a_mark_around_the_backward_pass_has_what_autograd_s_thread_launched(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, steps=2)
    for at in (0, 500):
        run.line(at, 10)
        run.op("aten::mm", at + 10, 20, seq=1, fwd=0)
        run.mark("backward", at + 100, 150)
        run.op("autograd::engine::evaluate_function: MmBackward0", at + 110, 50, tid=AUTOGRAD, seq=1, fwd=1)
        run.kernel(at + 200, 80, launched=at + 120, tid=AUTOGRAD)
        run.kernel(at + 300, 40, launched=at + 260)  # after it
    # The window begins inside a range of the step before, as where a step ends with optimizer.step().
    # Of that one the profiler may have seen nothing.
    run.mark("update", 450, 100)
    run.mark("update", 950, 100)
    backward, update = run.profile().marks
    assert (backward.name, backward.device_ms, backward.count) == ("backward", approx(0.08), approx(1))
    assert (update.name, update.count) == ("update", approx(1))


def test_the_roofline_tells_what_limits_a_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100_000)
    run.line(0, 10)
    size, types = [8192, 8192], ["c10::BFloat16", "c10::BFloat16"]
    run.op("aten::mm", 1, 20, dims=[size, size], types=types)
    ideal_us = 2 * 8192**3 / 989.4e12 * 1e6
    run.kernel(50, 2 * ideal_us, launched=5)
    run.line(30, 11)
    run.op("aten::add", 31, 20, dims=[size, size, []], types=[*types, "Scalar"])
    ideal_add_us = 3 * 8192**2 * 2 / 4.8e12 * 1e6
    run.kernel(5000, 4 * ideal_add_us, launched=35)
    profile = run.profile()
    product, addition = at_line(profile, 10).roofline, at_line(profile, 11).roofline
    assert product is not None
    assert addition is not None
    assert (product.bound, product.percent_of_peak) == ("compute", pytest.approx(50, rel=1e-3))
    assert (addition.bound, addition.percent_of_peak) == ("memory", pytest.approx(25, rel=1e-3))
    assert product.flops == 2 * 8192**3
    assert [at_line(profile, line).ops[0].tensor_core_dtype for line in (10, 11)] == ["bfloat16", None]


def test_an_unknown_device_has_no_roofline(tmp_path: Path) -> None:

    run = KinetoRun(tmp_path, 100, device=DeviceFacts("cuda", "Abacus 9", 1))
    run.line(0, 10)
    run.op("aten::mm", 1, 5, dims=[[8, 8], [8, 8]], types=["float", "float"])
    run.kernel(10, 20, launched=2)
    profile = run.profile()
    assert at_line(profile, 10).roofline is None
    assert any("Abacus 9" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("NVIDIA H200", 67e12),
        ("NVIDIA H200 NVL", 60e12),
        ("NVIDIA GH200 480GB", 67e12),
        ("NVIDIA H100 80GB HBM3", 67e12),
        ("NVIDIA H100 PCIe", 51e12),
        ("NVIDIA A100-SXM4-40GB", 19.5e12),
        ("Tesla T4", 8.1e12),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),  # a seventh of one
        ("NVIDIA RTX A4000", None),  # no A40
        ("NVIDIA T400 4GB", None),  # no T4
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 4080 SUPER", None),
    ],
)
def test_a_device_is_known_by_its_whole_name(name: str, flops: float | None) -> None:
    sheet = peaks_of(name, Facts())
    assert (sheet.fp32 if sheet else None) == flops
    measured = MeasuredPeaks(fp32=1e12, tf32=4e12, bf16=8e12, bytes_per_s=1e11)
    found = peaks_of(name, Facts(peaks=measured))
    assert found is not None
    assert found.source == ("data sheet" if flops else "measured")


def test_convolutions_may_run_in_tf32_where_products_may_not(tmp_path: Path) -> None:
    """As torch has it without being told; the H200 ran some at 103 TFLOP/s, over its float32 peak of 67."""
    shares = {}
    for allowed in (None, False):
        flags = {} if allowed is None else {"cudnn_allow_tf32": allowed}
        run = KinetoRun(tmp_path / str(allowed), 100_000, facts={"flags": {"allow_tf32": False, **flags}})
        run.line(0, 10)
        dims = [[32, 64, 64, 64], [128, 64, 3, 3], [], [], [], [], [], [], []]
        values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
        kinds = [
            "float",
            "float",
            "",
            "ScalarList",
            "ScalarList",
            "ScalarList",
            "Scalar",
            "ScalarList",
            "Scalar",
        ]
        run.op("aten::convolution", 1, 20, dims=dims, types=kinds, **{"Concrete Inputs": values})
        ideal_us = 2 * 32 * 64 * 64 * 64 * 128 * 9 / 494.7e12 * 1e6
        run.kernel(50, 10 * ideal_us, launched=5)
        roofline = at_line(run.profile(), 10).roofline
        assert roofline is not None
        shares[allowed] = roofline.percent_of_peak
    assert shares[None] == pytest.approx(10, rel=1e-3)
    assert shares[False] == pytest.approx(10 * 494.7 / 67, rel=1e-3)


def test_launch_shapes_and_occupancy_stay_with_the_kernel(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.line(0, 10)
    shape = {"grid": [8, 2, 1], "block": [256, 1, 1], "registers per thread": 40, "shared memory": 128}
    run.kernel(10, 20, launched=2, **shape, **{"est. achieved occupancy %": 31.5})
    (kernel,) = at_line(run.profile(), 10).kernels
    assert (kernel.grid, kernel.block) == ((8, 2, 1), (256, 1, 1))
    assert (kernel.registers, kernel.shared_bytes, kernel.occupancy_percent) == (40, 128, 31.5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", True),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(…)", True),
        ("ampere_sgemm_128x64_tn", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(…)", False),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", False),
        # As an H200 names them: float32 on the plain units, TF32 convolutions, what only prepares for one.
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4",
            False,
        ),
        ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize256x64x32", True),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)", True),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float>(cublasLt::cublasSplit)", False),
        ("void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma>()", False),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>()", None),
        ("my_own_kernel", None),
    ],
)
def test_tensor_cores_are_told_by_the_name(name: str, expected: bool | None) -> None:
    assert tensor_cores(name) is expected
