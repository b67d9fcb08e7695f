"""Few samples and many epochs: a sequence model that is fitted like a scikit-learn estimator."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Estimator:
    def __init__(self, width=1024, epochs=40, batch_size=32):
        self.epochs, self.batch_size = epochs, batch_size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.rnn = nn.LSTM(64, width, num_layers=2, batch_first=True).to(self.device)
        self.top = nn.Linear(width, 1).to(self.device)

    def make_loader(self, x, y):
        data = TensorDataset(x, y)
        return DataLoader(data, self.batch_size, shuffle=True, num_workers=4, pin_memory=True)  # flaw: loader-workers-restart

    def fit(self, x, y):
        loader = self.make_loader(x, y)
        params = [*self.rnn.parameters(), *self.top.parameters()]
        opt = torch.optim.Adam(params, lr=1e-3, fused=True)
        for _ in range(self.epochs):
            for xb, yb in loader:
                xb, yb = xb.to(self.device, non_blocking=True), yb.to(self.device, non_blocking=True)
                with torch.autocast(self.device, torch.bfloat16):
                    h, _ = self.rnn(xb)
                    loss = nn.functional.mse_loss(self.top(h[:, -1]).squeeze(1).float(), yb)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return self


if __name__ == "__main__":
    Estimator().fit(torch.randn(320, 128, 64), torch.randn(320))
