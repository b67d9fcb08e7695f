"""Visual place recognition on a (synthetic) campus: NetVLAD descriptors with a triplet loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class NetVLAD(nn.Module):
    """NetVLAD layer (Arandjelovic et al. 2016)."""

    def __init__(self, num_clusters=24, dim=48):
        super().__init__()
        self.num_clusters = num_clusters
        self.conv = nn.Conv2d(dim, num_clusters, kernel_size=1, bias=False)
        self.centroids = nn.Parameter(torch.rand(num_clusters, dim))
        nn.init.normal_(self.conv.weight, std=0.3)

    def forward(self, x):
        n, c = x.shape[:2]
        x = F.normalize(x, p=2, dim=1)  # across descriptor dim
        soft_assign = self.conv(x).flatten(2).softmax(dim=1)
        x_flatten = x.flatten(2)

        mass = soft_assign.sum(-1).unsqueeze(-1)
        vlad = soft_assign @ x_flatten.transpose(1, 2) - mass * self.centroids

        vlad = F.normalize(vlad, p=2, dim=2)  # intra-normalization
        return F.normalize(vlad.flatten(1), p=2, dim=1)


class EmbedNet(nn.Module):
    def __init__(self, base_model, net_vlad):
        super().__init__()
        self.base_model = base_model
        self.net_vlad = net_vlad

    def forward(self, x):
        return self.net_vlad(self.base_model(x))


def base_model(dim=48):
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2), nn.ReLU(inplace=True),
        nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(32, dim, 3, padding=1),
    )


class CampusViews:
    """Each place is a texture; a view is a shifted, darkened crop of it."""

    def __init__(self, places=60, size=96, crop=64):
        self.textures = F.interpolate(torch.randn(places, 3, 16, 16), size=size, mode="bilinear")
        self.places, self.crop, self.room = places, crop, size - crop

    def view(self, ids):
        dy, dx = torch.randint(self.room // 2, (2,)).tolist()
        crop = self.textures[ids, :, dy:dy + self.crop, dx:dx + self.crop]
        return crop * (0.7 + 0.6 * torch.rand(len(ids), 1, 1, 1)) + 0.1 * torch.randn_like(crop)

    def triplets(self, n):
        anchor = torch.randint(self.places, (n,))
        negative = (anchor + torch.randint(1, self.places, (n,))) % self.places
        return torch.cat([self.view(anchor), self.view(anchor), self.view(negative)])


def train(model, views, criterion, optimizer, iterations=420, n=6):
    active = []
    for iteration in range(1, iterations + 1):
        anchor, positive, negative = model(views.triplets(n)).chunk(3)
        loss = criterion(anchor, positive, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        active.append(loss.item())
        if iteration % 60 == 0:
            print("==> Iteration[{}]: avg. triplet loss {:.5f}".format(iteration, sum(active[-60:]) / 60))


@torch.inference_mode()
def recall_at_1(model, views):
    ids = torch.arange(views.places)
    database, queries = model(views.view(ids)), model(views.view(ids))
    return ((queries @ database.T).argmax(1) == ids).float().mean().item()


def main():
    torch.manual_seed(123)
    views = CampusViews()
    model = EmbedNet(base_model(), NetVLAD())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    train(model, views, nn.TripletMarginLoss(margin=0.3), optimizer)
    print("recall@1", round(recall_at_1(model, views), 3))


if __name__ == "__main__":
    main()
