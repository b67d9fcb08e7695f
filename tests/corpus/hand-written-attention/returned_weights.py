import torch as t

def scaled_attention(q, k, v, bias):
    scores = t.einsum("bhqd,bhkd->bhqk", q, k) * 0.125 + bias  #> cost device_ms=6
    weights = scores.softmax(-1)  #> cost device_ms=4
    context = t.einsum("bhqk,bhkd->bhqd", weights, v)  #> found; cost device_ms=5
    return context, weights
