# corpus: run
import torch

torch.manual_seed(0)
model = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).eval()
batch = torch.randn(16, 128, 256)


@torch.inference_mode()
def serve(requests):
    for _ in range(requests):
        yield model(batch)


for step, answer in enumerate(serve(600)):
    if step % 200 == 0:
        print(float(answer.mean()))
