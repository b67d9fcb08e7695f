import torch

num_classes = 1003  #> found
net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, num_classes)).half().cuda()
for x, y in loader:
    out = net(x.half())
    #^ cost device_ms=9; op aten::addmm device_ms=2 shapes=[[4096],[512,4096],[4096,4096]] dtypes=c10::Half,c10::Half,c10::Half
    #^ op aten::addmm device_ms=6 shapes=[[1003],[512,4096],[4096,1003]] dtypes=c10::Half,c10::Half,c10::Half
    loss = torch.nn.functional.cross_entropy(out, y)  #> cost device_ms=1
