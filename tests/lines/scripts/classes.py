import torch


class Vector:
    """Operators of an own class, properties, and attributes made when asked for."""

    def __init__(self, x):
        self.x = x

    def __matmul__(self, other):
        return torch.outer(self.x[0], other.x[0])  #> outer

    @property
    def length(self):
        return torch.dist(self.x, self.x * 2)  #> dist DistBackward0

    def __getattr__(self, name):
        return self.x.argmin()  #> argmin

    def __getitem__(self, at):
        return self.x.detach().histc()[0]  #> histc

    def __call__(self):
        return self.x.logsumexp(0)  #> logsumexp LogsumexpBackward0

    def __bool__(self):
        return bool(self.x.all())  #> all

    def __iter__(self):
        yield self.x.renorm(2, 0, 1.0)  #> renorm RenormBackward0

    def __enter__(self):
        self.x.median()  #> median

    def __exit__(self, *_):
        self.x.kthvalue(1)  #> kthvalue

    def __contains__(self, item):
        return bool(self.x.isposinf().any())  #> isposinf


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})  #> diff
        if getattr(function, "__name__", "") == "diff":
            result.as_subclass(torch.Tensor).cummax(0)  #> cummax
        return result


class Base:
    def twice(self, x):
        return x.baddbmm(x, x)  #> baddbmm BaddbmmBackward0


class Derived(Base):
    def twice(self, x):
        y = super().twice(x)
        return y.bmm(x)  #> bmm BmmBackward0


def hook_before(module, args):
    args[0].detach().var()  #> var


def hook_after(module, args, result):
    return torch.nn.functional.mish(result)  #> mish MishBackward0


silu = torch.nn.SiLU()
silu.register_forward_pre_hook(hook_before)
silu.register_forward_hook(hook_after)


def run(x):
    vector = Vector(x)
    a = vector @ vector
    b = vector.length
    c = vector.anything
    d = vector[3]
    e = vector()
    f = 1.0 if vector else 0.0
    g = sum(vector)
    with vector:
        h = x.diagonal()  #> diagonal DiagonalBackward0
    i = 1.0 if 3 in vector else 0.0
    j = x.detach().as_subclass(Tagged).diff()
    k = silu(x)  #> silu SiluBackward0
    m = Derived().twice(x.expand(2, 6, 6))  #> ExpandBackward0
    return (
        a.mean()
        + b
        + c
        + d
        + e.mean()
        + f
        + g.mean()
        + h.mean()
        + i
        + j.as_subclass(torch.Tensor).mean()
        + k.mean()
        + m.mean()
    )
