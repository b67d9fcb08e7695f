import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL")
CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
H = dict(side=192, batch=24, width=64, cascades=4, epochs=12, per_epoch=7, workers=8)
if SMALL:
    H = dict(side=16, batch=2, width=8, cascades=1, epochs=3, per_epoch=10, workers=2)


class Knees(Dataset):
    """Undersampled k-space of smooth random images, with the mask and the image."""

    def __init__(self, count, side):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        image = F.interpolate(torch.rand(1, 2, 8, 8, generator=g), size=self.side, mode="bilinear")[0]
        mask = (torch.rand(self.side, generator=g) < 0.3).float()
        mask[self.side // 2 - 4 : self.side // 2 + 4] = 1
        k = torch.fft.fft2(torch.complex(image[0], image[1]), norm="ortho") * mask
        return torch.view_as_real(k), mask, image


class Cascade(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(2, width, 3, padding=1), nn.ReLU(True), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(True),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(True), nn.Conv2d(width, 2, 3, padding=1),
        )

    def forward(self, image, kspace, mask):
        with torch.autocast(device.type, torch.bfloat16):
            delta = self.net(image.contiguous(memory_format=torch.channels_last))
        image = image - delta.float()
        guess = torch.fft.fft2(torch.complex(image[:, 0], image[:, 1]), norm="ortho")
        guess = torch.where(mask[:, None, :] > 0, kspace, guess)
        return torch.view_as_real(torch.fft.ifft2(guess, norm="ortho")).permute(0, 3, 1, 2)


class KneeData:
    options = dict(batch_size=H["batch"], shuffle=True, num_workers=H["workers"], pin_memory=CUDA, drop_last=True)

    def __init__(self):
        self.train = Knees(H["batch"] * H["per_epoch"], H["side"])
        self.loader = DataLoader(self.train, **self.options, persistent_workers=True)

    def epoch(self):
        for batch in self.loader:
            yield [t.to(device, non_blocking=True) for t in batch]


def main():
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    cascades = nn.ModuleList(Cascade(H["width"]) for _ in range(H["cascades"]))
    cascades.to(device, memory_format=torch.channels_last)
    opt = torch.optim.Adam(cascades.parameters(), 1e-4, fused=True)
    data = KneeData()
    for epoch in range(H["epochs"]):
        total = torch.zeros((), device=device)
        for k, mask, image in data.epoch():
            k = torch.view_as_complex(k)
            x = torch.view_as_real(torch.fft.ifft2(k, norm="ortho")).permute(0, 3, 1, 2)
            for cascade in cascades:
                x = cascade(x, k, mask)
            loss = F.l1_loss(x, image)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        if epoch % 4 == 3 or epoch == H["epochs"] - 1:
            print("epoch", epoch, "l1", total.item() / H["per_epoch"])


if __name__ == "__main__":
    main()
