from rollout import gather

for episode in range(100):
    learn(gather(episode))  #> cost device_ms=5
