import asyncio
import contextlib
import functools

import torch

loop = asyncio.new_event_loop()


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        y = x.tan()  #> tan TanBackward0
        y = function(y)
        return y.atan()  #> atan AtanBackward0

    return wrapper


@doubled
def decorated(x):
    return x.sigmoid()  #> sigmoid SigmoidBackward0


@torch.no_grad()
def without_gradient(x):
    return x.digamma()  #> digamma


def generator(x):
    yield x.log2()  #> log2 Log2Backward0
    y = x.log10()  #> log10 Log10Backward0
    yield y


def delegating(x):
    yield from generator(x)
    yield x.log()  #> log LogBackward0


@contextlib.contextmanager
def context(x):
    y = x.exp2()  #> exp2 Exp2Backward0
    yield y
    x.std()  #> std


def recursive(x, depth):
    if depth == 0:
        return x.erfc()  #> erfc ErfcBackward0
    y = recursive(x, depth - 1)
    return torch.logaddexp(y, x)  #> logaddexp LogaddexpBackward0


def failing(x):
    x.erfinv()  #> erfinv
    raise ValueError


def guarded(x):
    try:
        failing(x)
    except ValueError:
        y = x.acos()  #> acos AcosBackward0
    else:
        y = x
    finally:
        z = x.asin()  #> asin AsinBackward0
    return y + z


async def inner(x):
    await asyncio.sleep(0)
    return x.atanh()  #> atanh AtanhBackward0


async def outer(x):
    y = await inner(x)
    return torch.hypot(y, x)  #> hypot HypotBackward0


def run(x):
    a = decorated(x)
    b = without_gradient(x)
    c = [part.softmax(0) for part in (x, x)]  #> softmax SoftmaxBackward0
    d = {at: x.cumprod(0) for at in range(2)}  #> cumprod CumprodBackward0
    e = sum(part.logcumsumexp(0).mean() for part in (x, x))  #> logcumsumexp LogcumsumexpBackward0
    f = (lambda y: y.sinc())(x)  #> sinc SincBackward0
    g = list(map(lambda y: y.roll(1), [x]))[0]  #> roll RollBackward0
    h = sorted([x, x], key=lambda y: y.trace().item())  #> trace
    i = functools.reduce(torch.fmax, [x, x * 2])  #> fmax FmaxBackward0
    j = sum(delegating(x))
    with context(x) as k:
        k = k.tril()  #> tril TrilBackward0
    m = recursive(x, 3)
    n = guarded(x)
    o = loop.run_until_complete(outer(x))
    p = apply(lambda y: y.triu(), x)  #> triu TriuBackward0
    q = apply(
        lambda y: y.lgamma(),  #> lgamma
        x.detach().square(),  #> square
    )
    for part in x.unbind(0):  #> unbind UnbindBackward0
        j = j + part.reciprocal()  #> reciprocal ReciprocalBackward0
    while x.count_nonzero() < 0:  #> count_nonzero
        pass
    return (
        a.mean()
        + b.mean()
        + c[0].mean()
        + d[0].mean()
        + e
        + f.mean()
        + g.mean()
        + h[0].mean()
        + i.mean()
        + j.mean()
        + k.mean()
        + m.mean()
        + n.mean()
        + o.mean()
        + p.mean()
        + q.mean()
    )


def apply(function, x):
    y = function(x)
    return y.arctan2(x)  #> arctan2 Atan2Backward0
