import torch


def run(x):
    ints = (x.detach() * 9).int()
    rows = torch.tensor([0, 1])
    a = x @ x  #> mm MmBackward0
    a = a % 7  #> remainder RemainderBackward0
    a = a**-0.5  #> PowBackward0
    a = a + x.detach() ** x  #> PowBackward1
    b = -x  #> neg NegBackward0
    c = ints // 2  #> floor_divide
    c = ints & ints  #> __and__
    c = c | 4  #> bitwise_or
    c = c ^ 1  #> bitwise_xor
    c = ~c  #> bitwise_not
    c = c << 1  #> __lshift__
    c = c >> 1  #> __rshift__
    d = c < 3
    d = c <= 3  #> le
    d = c > 3  #> gt
    d = c >= 3  #> ge
    d = c == 3
    d = c != 3
    e = x[d]  #> index IndexBackward0
    f = x[2:4].i0()  #> i0 I0Backward0
    g = x.clone()  #> CloneBackward0
    g[rows, rows] = x.detach()[0, :2]  #> index_put_
    h = x * 1.0
    h += b
    h -= 0.5  #> sub_
    h *= 2.0  #> mul_
    h /= 3.0
    i = abs(x)  #> AbsBackward0
    j = (
        x.asinh()  #> asinh AsinhBackward0
        + (x + 1).acosh().nan_to_num(  #> acosh nan_to_num AcoshBackward0
            nan=float(
                x.max()  #> max
            )
        )
    )
    k = torch.where(  #> where WhereBackward0
        x.isnan(),  #> isnan
        x.expm1(),  #> expm1 Expm1Backward0
        x.log1p(),  #> log1p Log1PBackward0
    )
    m = (
        x.rsqrt()  #> rsqrt RsqrtBackward0
        .cumsum(0)  #> cumsum CumsumBackward0
        .flip(0)  #> flip FlipBackward0
    )
    n = x.floor() if x.numel() > 3 else x.ceil()  #> floor FloorBackward0
    o = [x.frac(), x.trunc()][0]  #> frac trunc
    p, q = x.cosh(), x.sinh()  #> cosh sinh CoshBackward0 SinhBackward0
    r = {"key": x.erf()}["key"]  #> erf ErfBackward0
    assert not x.isinf().any()  #> isinf
    s = f"{x.argmax()}"  #> argmax
    return (
        a.mean()
        + b.mean()
        + e.mean()
        + f.mean()
        + g.mean()
        + h.mean()
        + i.mean()
        + j.mean()
        + k.mean()
        + m.mean()
        + n.mean()
        + o.mean()
        + p.mean()
        + q.mean()
        + r.mean()
        + len(s)
    )
