#> memory growth_bytes_per_step=33554432 peak_bytes=4000000000
class Board:
    def __init__(self):
        self.curves = {}

    def note(self, key, number):
        self.curves.setdefault(key, []).append(number)  #> found; cost calls=2


def overlap(masks, truth):
    return 2 * (masks * truth).sum() / (masks + truth).sum()  #> cost function=overlap calls=1 device_ms=2 kept_bytes=33554432 nodes=7 unused_nodes=7


board = Board()
for images, truth in batches:  #> cost calls=1
    masks = net(images).sigmoid()  #> cost calls=1 device_ms=20 nodes=60
    loss = criterion(masks, truth)  #> cost calls=1 device_ms=1 nodes=3
    dice = overlap(masks, truth)  #> cost calls=1
    loss.backward()  #> cost calls=1
    optimizer.step()  #> cost calls=1
    board.note("loss", loss.detach())  #> cost calls=1
    board.note("dice", dice)  #> cost calls=1
