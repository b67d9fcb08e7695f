import torch


class Index:
    def __init__(self, keys):
        self.keys = keys

    def nearest(self, queries, k):
        distance = torch.cdist(queries, self.keys)  #> cost device_ms=6; node aten._cdist_forward.default args=[%7,%8] shape=[256,500000]
        near, at = distance.sort(dim=-1)
        #^ found; cost step_ms=20 device_ms=20; op aten::sort device_ms=20 shapes=[[256,500000]]
        #^ node aten.sort.default args=[%0,-1] shape=[256,500000]
        return near[:, :k]  #> node aten.slice.Tensor args=[%1,1,0,16] shape=[256,16]


for queries in batches:
    show(index.nearest(queries, 16))
