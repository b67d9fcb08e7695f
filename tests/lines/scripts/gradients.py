import torch
from torch.utils.checkpoint import checkpoint


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.fmod(3)  #> fmod

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        scale = x.heaviside(x)  #> in:heaviside
        return (
            gradient.clamp_min(0)  #> in:clamp_min
            * scale.rot90()  #> in:rot90
        )


def plain(x):
    y = torch.nn.functional.elu(x)  #> elu EluBackward0 again:elu
    return y.positive()


def reentrant(x):
    y = torch.nn.functional.hardswish(x)  #> hardswish HardswishBackward0 again:hardswish
    return library(y)  #> softplus SoftplusBackward0 again:softplus


library = torch.nn.Softplus()


def on_gradient(gradient):
    return gradient.ldexp(torch.tensor(1))  #> in:ldexp


def on_accumulated(parameter):
    parameter.grad.copysign(parameter.grad)  #> in:copysign


class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.LogSigmoid()

    def forward(self, x):
        x = self.act(x)  #> log_sigmoid LogSigmoidBackward0
        return x


shared = Shared()
leaf = torch.nn.Parameter(torch.rand(6))
leaf.register_post_accumulate_grad_hook(on_accumulated)


def run(x):
    a = Own.apply(x)
    b = checkpoint(plain, x * 2, use_reentrant=False)
    c = checkpoint(reentrant, x * 3, use_reentrant=True)
    d = torch.nn.functional.hardtanh(x)  #> hardtanh HardtanhBackward0
    d.register_hook(on_gradient)
    e = torch.nn.functional.hardsigmoid(x)  #> hardsigmoid HardsigmoidBackward0
    e.register_hook(lambda gradient: gradient.nextafter(gradient))  #> in:nextafter
    f = shared(shared(x))
    (g,) = torch.autograd.grad(x.prod(), x, create_graph=True)  #> prod ProdBackward0
    h = torch.nn.functional.leaky_relu(leaf * x)  #> leaky_relu LeakyReluBackward0
    i = torch.nn.functional.gelu(x)  #> gelu GeluBackward0
    if i.requires_grad:
        i = torch.nn.functional.softshrink(i)  #> softshrink SoftshrinkBackward0
    return a.mean() + b.mean() + c.mean() + d.mean() + e.mean() + f.mean() + g.mean() + h.mean() + i.mean()
