#> flags cudnn_benchmark=false deterministic=false
import torch, torch.nn as nn

generator = nn.Sequential(nn.ConvTranspose2d(100, 512, 4), nn.ConvTranspose2d(512, 3, 4)).cuda()
for noise in noises:
    fake = generator(noise)  #> found; cost device_ms=12; op aten::cudnn_convolution_transpose count=2 device_ms=11
    fake.mean().backward()
