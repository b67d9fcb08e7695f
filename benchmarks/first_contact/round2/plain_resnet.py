import torch
import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.short = nn.Sequential() if stride == 1 and cin == cout else nn.Sequential(
            nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.short(x))


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.stages = nn.Sequential(Residual(64, 64), Residual(64, 128, 2), Residual(128, 256, 2), Residual(256, 512, 2))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean(dim=(-2, -1)))


class Trainer:
    def __init__(self, batch=256, size=64):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cudnn.benchmark = True
        self.batch = batch
        self.model = Net().to(self.device)  # flaw: channels-first-conv
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.images = torch.randn(4 * batch, 3, size, size, device=self.device)  # flaw: channels-first-conv
        self.labels = torch.randint(0, 100, (4 * batch,), device=self.device)

    def batches(self):
        while True:
            for i in range(4):
                s = slice(i * self.batch, (i + 1) * self.batch)
                yield self.images[s], self.labels[s]

    def run(self, steps):
        for n, (x, y) in zip(range(steps), self.batches()):
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                loss = self.loss(self.model(x), y)  # flaw: channels-first-conv
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            if n % 100 == 99:
                print(n + 1, loss.item())


if __name__ == "__main__":
    Trainer().run(400)
