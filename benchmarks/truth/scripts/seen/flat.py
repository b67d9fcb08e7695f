# Everything at module level, as in a notebook that was exported.
import torch
import torch.nn.functional as F

torch.manual_seed(0)
W1 = torch.randn(256, 512, requires_grad=True)
W2 = torch.randn(512, 10, requires_grad=True)
opt = torch.optim.Adam([W1, W2], lr=1e-4)
data = torch.randn(2048, 256)
labels = torch.randint(0, 10, (2048,))
words = [str(i % 977) for i in range(20000)]
for epoch in range(100000):  # noqa: B007 - as people write it
    pick = torch.randint(0, 2048, (256,))
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    text = "-".join(sorted(words))
    upper = text.upper().replace("1", "one").split("-")
    h = data[pick] @ W1
    h = torch.relu(h)
    h = h / (h.norm(dim=1, keepdim=True) + 1e-6)
    logits = h @ W2
    loss = F.cross_entropy(logits, labels[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
