from objective import OBJECTIVES

objective = OBJECTIVES["huber"]
for x, y in loader:
    loss = objective(model(x), y)  #> cost device_ms=8
    loss.backward()
