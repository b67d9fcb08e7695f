#> device kind=cuda
# numpy's wave numbers are float64, so the spectra are complex numbers of twice 64 bits.
import numpy as np
import torch

steps = np.fft.fftfreq(256)
slope = torch.from_numpy(2j * np.pi * steps).cuda()  #> found


def filtered(field):
    spectrum = torch.fft.rfft(field)
    #^ cost device_ms=2; op aten::_fft_r2c device_ms=2 shapes=[[64,512]] dtypes=float
    parts = torch.stack((spectrum * slope, spectrum))
    #^ cost device_ms=6; op aten::cat device_ms=4 shapes=[[64,256,64,256]] dtypes=TensorList outer=false
    #^ op aten::mul device_ms=2 shapes=[[64,256],[256]] dtypes=c10::complex<float>,c10::complex<double>
    return torch.fft.irfft(parts)
    #^ cost device_ms=9; op aten::_fft_c2r device_ms=9 shapes=[[2,64,256]] dtypes=c10::complex<double> outer=false


for field in fields:
    loss = model(filtered(field)).mean()
    #^ cost device_ms=60; op aten::mm device_ms=50 shapes=[[512,512],[512,512]] dtypes=c10::Half,c10::Half
