#> flags cudnn_benchmark=true
import nets
import torch

model = nets.create("unet").to("cuda:0")  #> found
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for image, mask in loader:
    prediction = model(image)  #> found fp32-matmul; cost cpu_ms=0.3
    loss = torch.nn.functional.mse_loss(prediction, mask)  #> cost device_ms=1
    loss.backward()
    optimizer.step()
