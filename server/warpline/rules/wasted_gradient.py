"""Gradients are computed and thrown away.

## What it does

Finds parts of the model that the backward pass goes through for nothing: a discriminator's step that goes
back through the generator, a frozen backbone or a teacher whose parameters still ask for gradients. It also
finds layers whose weights get gradients that nothing uses, on the way to other parameters or to an input: a
critic below an actor's loss, frozen weights between adapters, a model whose input is attacked, a network that
judges the picture which is optimized. Such gradients belong to no optimizer, or are cleared before anything
reads them, as two recorded steps show; then another backward pass has to train their parameters, or the
script has no optimizer, and the gradient of its own tensor. Where an optimizer makes no step in these, as a
generator's while the critic makes many, the text has to clear the gradients before each of its steps.

The finding is at the call of that part; that of modules that no optimizer has is where the script sets them
to evaluate, or makes them, if these are whole modules. A layer that a forward pass makes has new weights in
each step, which are never trained: that finding is about the time to fill them.

Nothing is reported if something may read the gradients (hooks, a norm of all of them, a reduction over
ranks), if the graph is kept for another pass, or if lines that have not run yet would train more parameters.
In scripts that compile, only calls of parts that no optimizer has are found, and only where their gradients
are in memory as a step ends: what was made of cleared ones is not known there.

## Why is this slow

The backward pass takes about twice as long as the forward pass: for each layer once for its input, once for
its weights. What is detached costs no backward pass, and without a graph no tensors are kept for it.

## Example

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true; tensor %21 shape=[64,1] parameter=true
for images in loader:
    fake = generator(noise())
    #^ found; cost step_ms=20 device_ms=20 backward_ms=12
    #^ node aten.mm.default args=[%22,%20] shape=[32,64]
    score = critic(fake)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,1]
    critic_optimizer.zero_grad()
    score.mean().backward()  #> pass roots=[%1] read=[%21] cleared=[%20]
    critic_optimizer.step()
    verdict = critic(generator(noise()))
    #^ cost step_ms=26 device_ms=26 backward_ms=16
    #^ node aten.mm.default args=[%23,%20] shape=[32,64]; node aten.mm.default args=[%2,%21] shape=[32,1]
    generator_optimizer.zero_grad()
    verdict.mean().neg().backward()  #> pass roots=[%3] read=[%20] cleared=[%21]
    generator_optimizer.step()
```

## Use instead

```python
import torch

for images in loader:
    with torch.no_grad():
        fake = generator(noise())
    score = critic(fake)
    critic_optimizer.zero_grad()
    score.mean().backward()
    critic_optimizer.step()
    verdict = critic(generator(noise()))
    generator_optimizer.zero_grad()
    verdict.mean().neg().backward()
    generator_optimizer.step()
```

## Example

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,10] parameter=true
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  #> site optimizer
for images, labels in loader:
    features = backbone(images)
    #^ found; cost step_ms=20 device_ms=20 backward_ms=12
    #^ node aten.mm.default args=[%22,%20] shape=[32,64]
    loss = criterion(head(features), labels)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,10]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for images, labels in loader:
    with torch.no_grad():
        features = backbone(images)
    loss = criterion(head(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Example

The critic makes many steps for each of the generator:

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true; tensor %21 shape=[64,1] parameter=true
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)  #> site optimizer as=first shapes=[[1,64,1]]
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)  #> site optimizer as=second shapes=[[1,64,64]]
while True:
    for _ in range(100):
        critic.zero_grad()
        fake = generator(noise())
        #^ found; cost step_ms=20 device_ms=20 backward_ms=12
        #^ node aten.mm.default args=[%22,%20] shape=[32,64]
        score = critic(fake)
        #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,1]
        score.mean().backward()  #> pass roots=[%1] read=[%21] left=[%20]
        of_critic.step()  #> use first
    generator.zero_grad()
    critic(generator(noise())).mean().neg().backward()
    of_generator.step()
```

## Use instead

```python
import torch

of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
while True:
    for _ in range(100):
        critic.zero_grad()
        with torch.no_grad():
            fake = generator(noise())
        score = critic(fake)
        score.mean().backward()
        of_critic.step()
    generator.zero_grad()
    critic(generator(noise())).mean().neg().backward()
    of_generator.step()
```

## Example

The actor's gradients go through the critic, whose weights need none there:

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true; tensor %21 shape=[64,1] parameter=true
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)  #> site optimizer as=first shapes=[[1,64,1]]
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)  #> site optimizer as=second shapes=[[1,64,64]]
for states, actions, targets in batches:
    error = (critic(states, actions) - targets).square().mean()
    #^ cost step_ms=9 device_ms=9 backward_ms=6
    #^ node aten.mm.default args=[%22,%21] shape=[32,1]
    critic_optimizer.zero_grad()
    error.backward()  #> pass roots=[%0] read=[%21]
    critic_optimizer.step()  #> use first
    chosen = actor(states)
    #^ cost step_ms=9 device_ms=9 backward_ms=6; node aten.mm.default args=[%23,%20] shape=[32,64]
    value = critic(states, chosen)
    #^ found; cost step_ms=9 device_ms=9 backward_ms=6; op aten::mm phase=backward count=2 device_ms=6
    #^ node aten.mm.default args=[%1,%21] shape=[32,1]
    actor_optimizer.zero_grad()
    value.mean().neg().backward()  #> pass roots=[%2] read=[%20] cleared=[%21]
    actor_optimizer.step()  #> use second
```

## Use instead

```python
import torch

critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
for states, actions, targets in batches:
    error = (critic(states, actions) - targets).square().mean()
    critic_optimizer.zero_grad()
    error.backward()
    critic_optimizer.step()
    chosen = actor(states)
    value = critic(states, chosen)
    actor_optimizer.zero_grad()
    value.mean().neg().backward(inputs=[p for group in actor_optimizer.param_groups for p in group["params"]])
    actor_optimizer.step()
```

## Example

An attack needs the gradient of its input only, and the next `zero_grad` clears those of the weights:

```python
#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true; tensor %8 shape=[32,64] leaf=true
def attack(images, labels):
    shift = torch.zeros_like(images).requires_grad_()
    loss = criterion(model(images + shift), labels)
    #^ found; cost step_ms=9 device_ms=9 backward_ms=6; op aten::mm phase=backward count=2 device_ms=6
    #^ node aten.mm.default args=[%8,%20] shape=[32,64]
    loss.backward()  #> pass roots=[%0] cleared=[%20]
    return images + shift.grad.sign()

for images, labels in batches:
    hard = attack(images, labels)
    optimizer.zero_grad()
    loss = criterion(model(hard), labels)
    #^ cost step_ms=9 device_ms=9 backward_ms=6; node aten.mm.default args=[%9,%20] shape=[32,64]
    loss.backward()  #> pass roots=[%1] read=[%20]
    optimizer.step()
```

## Use instead

```python
def attack(images, labels):
    shift = torch.zeros_like(images).requires_grad_()
    loss = criterion(model(images + shift), labels)
    loss.backward(inputs=[shift])
    return images + shift.grad.sign()

for images, labels in batches:
    hard = attack(images, labels)
    optimizer.zero_grad()
    loss = criterion(model(hard), labels)
    loss.backward()
    optimizer.step()
```

## Example

A fixed network judges what is trained:

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,10] parameter=true
judge = resnet().eval()  #> found; site untrained type=ResNet weights=2 evaluated=true
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  #> site optimizer shapes=[[1,64,10]]
for images, labels in loader:
    made = net(images)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%22,%21] shape=[32,10]
    loss = distance(judge(made), labels)
    #^ cost step_ms=20 device_ms=20 backward_ms=12
    #^ op aten::mm phase=backward shapes=[[64,512],[512,64]] device_ms=6
    #^ node aten.mm.default args=[%0,%20] shape=[32,64]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

judge = resnet().eval().requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for images, labels in loader:
    made = net(images)
    loss = distance(judge(made), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Example

A backbone that the script makes, and trains nowhere:

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,10] parameter=true
backbone = Backbone()  #> found; site untrained type=Backbone weights=1 evaluated=false
head = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  #> site optimizer
for images, labels in loader:
    scores = head(backbone(images))
    #^ cost step_ms=20 device_ms=20 backward_ms=12; node aten.mm.default args=[%22,%20] shape=[32,64]
    loss = criterion(scores, labels)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,10]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

backbone = Backbone().requires_grad_(False)
head = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for images, labels in loader:
    scores = head(backbone(images))
    loss = criterion(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Example

A picture is what the optimizer changes, by a network that only looks at it:

```python
import torch

#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,512] parameter=true unheld=true; tensor %8 shape=[32,64] leaf=true
net = Extractor().eval()  #> found; site untrained type=Extractor weights=1 evaluated=true
picture = torch.rand(32, 64, requires_grad=True)
optimizer = torch.optim.Adam([picture])  #> site optimizer shapes=[[1,32,64]]
for step in range(200):
    loss = (gram(net(picture)) - wanted).square().mean()
    #^ cost step_ms=20 device_ms=20 backward_ms=12
    #^ op aten::mm phase=backward shapes=[[64,32],[32,512]] device_ms=6
    #^ node aten.mm.default args=[%8,%20] shape=[32,512]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

net = Extractor().eval().requires_grad_(False)
picture = torch.rand(32, 64, requires_grad=True)
optimizer = torch.optim.Adam([picture])
for step in range(200):
    loss = (gram(net(picture)) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: values stay the same, but these gradients are None afterwards. Code that reads them in a step that was
not recorded fails or changes.

## References

- [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
- [Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.rulekit import Context, Draft, Rule
from warpline.rulekit.thrown_drafts import thrown_away
from warpline.rulekit.unheld_drafts import for_nobody, frozen


class WastedGradient(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        replayed_ms = context.profile.unattributed.device_ms  # no operators, so the pass is unknown
        if not context.profile.facts.flags.grad_enabled_in_step or context.matters(replayed_ms):
            return
        yield from list(for_nobody(context)) or frozen(context)
        yield from thrown_away(context)
