#> memory growth_bytes_per_step=16777216 peak_bytes=2000000000
class Replay:
    def __init__(self):
        self.items = []

    def add(self, state):
        self.items.append(encode(state))  #> found; cost device_ms=3 kept_bytes=16777216


replay = Replay()
for state in environment:
    replay.add(state)
    learn(replay)  #> cost device_ms=20
