"""Kernel names as people read them: from the trace of an H200, to the operation and its type."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from warpline.model.kernel_name import MOST, readable

NAMES = {
    "transpose_rows": "transpose_rows",
    "triton_poi_fused_cos_mul_2": "triton_poi_fused_cos_mul_2",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)": (
        "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"
    ),
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl("
    "at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#2}::"
    "operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl("
    "at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}, std::array<char*, 2ul>)": (
        "vectorized_elementwise_kernel<GeluCUDAKernelImpl>"
    ),
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
    "{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)": (
        "elementwise_kernel<direct_copy_kernel_cuda>"
    ),
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
    "(at::native::ADAM_MODE)1, false>, float const*>(int)": (
        "multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>"
    ),
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 1, true, false>(float*, int)": (
        "softmax_warp_forward<float>"
    ),
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_"
    "execute_kernel__5x_cublas": "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8…_cublas",
    "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock22"
    "ImplicitGemmMultistageINS_4gemm9GemmShapeILi64ELi64ELi64EEENS4_52Conv2dWgradOutputGradientTile": (
        "Kernel<ImplicitGemmConvolution<ImplicitGemmMultistage>>"
    ),
    "_Z9my_kernelPKfPfi": "my_kernel",
}


@pytest.mark.parametrize(("full", "short"), NAMES.items(), ids=list(NAMES.values()))
def test_a_name_says_the_operation_and_its_type(full: str, short: str) -> None:
    assert readable(full) == short


@pytest.mark.parametrize(
    "odd", ["", "<", ">", "(", "_Z", "_Z9", "a<" * 5000, "void f<(", "a" * 5000, "{0}<b>"]
)
def test_what_is_no_kernel_name_does_no_harm(odd: str) -> None:
    assert len(readable(odd)) <= MOST


class Event(msgspec.Struct, gc=False):
    cat: str = ""
    name: str = ""


class Recorded(msgspec.Struct):
    traceEvents: list[Event]


@pytest.mark.parametrize("name", ["channels_last", "layernorm-finetune", "loader-without-workers"])
def test_recorded_names_are_short_and_hold_no_code(name: str, recorded: Callable[[str], Path]) -> None:
    trace = msgspec.json.decode((recorded(name) / "trace.json").read_bytes(), type=Recorded)
    kernels = {event.name for event in trace.traceEvents if event.cat == "kernel"}
    assert kernels
    for kernel in kernels:
        short = readable(kernel)
        assert 0 < len(short) <= MOST
        assert not set(short) & set("{}()`\n"), short
