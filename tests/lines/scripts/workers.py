import threading
from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(1)


def in_thread(x, results):
    y = x.detach().sort()  #> sort
    results.append(helper(y.values))


def helper(x):
    return x.logit()  #> logit


def in_pool(x):
    return torch.cdist(x, x)  #> cdist


def run(x):
    results = []
    thread = threading.Thread(target=in_thread, args=(x, results))
    thread.start()
    a = x.deg2rad()  #> deg2rad Deg2RadBackward0
    thread.join()
    b = pool.submit(in_pool, x.detach()).result()
    with ThreadPoolExecutor(2) as fresh:
        c = list(fresh.map(lambda y: y.detach().rad2deg(), [x, x]))  #> rad2deg
    return a.mean() + b.mean() + c[0].mean()
