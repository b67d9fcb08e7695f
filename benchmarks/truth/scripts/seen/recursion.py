"""Recursive Python beside a small network: trees, permutations, a parser."""

import torch
from torch import nn

EXPRESSION = "((1+2)*(3+4)*((5+6)*7+8)+9)*(2+3*(4+5))+1"


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def permutations(items):
    if len(items) <= 1:
        return [items]
    found = []
    for at, item in enumerate(items):
        rest = items[:at] + items[at + 1 :]
        found += [[item, *other] for other in permutations(rest)]
    return found


def parse(text, at=0):
    total, product = 0, 1
    while at < len(text):
        symbol = text[at]
        if symbol == "(":
            value, at = parse(text, at + 1)
            product *= value
        elif symbol == ")":
            return total + product, at
        elif symbol == "+":
            total, product = total + product, 1
        elif symbol.isdigit():
            product *= int(symbol)
        at += 1
    return total + product, at


def main():
    net = nn.Linear(512, 512)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    x = torch.randn(256, 512)
    for _ in range(100000):
        number = fibonacci(17)
        orders = permutations([1, 2, 3, 4, 5, 6])
        values = [parse(EXPRESSION)[0] for _ in range(100)]
        y = net(x)
        loss = y.square().mean() + number * 0 + len(orders) * 0 + values[0] * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
