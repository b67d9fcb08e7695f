TASK = object()


def learn(batch): ...
