def project(x, w):
    return x @ w
    #^ found; cost device_ms=6
    #^ kernel sm90_xmma_gemm_bf16 count=4 device_ms=6 grid=(20,7,1) block=(384,1,1) registers=168 shared_bytes=214000
