"""Face embeddings with batch-hard triplets: P identities, K pictures each."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class BatchHardTripletLoss(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, identity):
        distance = torch.cdist(embeddings, embeddings)
        same = identity[:, None] == identity[None, :]
        losses = []
        for i in range(len(embeddings)):  # flaw: python-loop-over-tensor
            hardest_positive = distance[i][same[i]].max()
            hardest_negative = distance[i][~same[i]].min()
            losses.append(F.relu(hardest_positive - hardest_negative + self.margin))
        return torch.stack(losses).mean()


class PKSampler:
    def __init__(self, labels, p, k, batches):
        self.by_identity = [torch.nonzero(labels == i).squeeze(1) for i in labels.unique()]
        self.p, self.k, self.batches = p, k, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            people = torch.randperm(len(self.by_identity))[: self.p].tolist()
            rows = [self.by_identity[i] for i in people]
            yield torch.cat([r[torch.randperm(len(r))[: self.k]] for r in rows])


class FaceNet(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        layers, cin = [], 1
        for cout in (16, 32, 48):
            layers += [
                nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(cout),
                nn.ReLU(inplace=True),
            ]
            cin = cout
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(cin, dim)

    def forward(self, x):
        return F.normalize(self.out(self.body(x).mean((2, 3))), dim=1)


def make_faces(people=60, each=12, size=32):
    faces = torch.rand(people, 1, 1, size, size).expand(-1, each, -1, -1, -1)
    faces = faces + 0.3 * torch.randn(people, each, 1, size, size)
    return faces.flatten(0, 1), torch.arange(people).repeat_interleave(each)


def main():
    torch.manual_seed(0)
    faces, identity = make_faces()
    model, criterion = FaceNet(), BatchHardTripletLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True)
    sampler = PKSampler(identity, p=24, k=4, batches=60)
    for epoch in range(5):
        running = 0.0
        for index in sampler:
            loss = criterion(model(faces[index]), identity[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"[{epoch}] triplet loss {running / len(sampler):.4f}")


if __name__ == "__main__":
    main()
