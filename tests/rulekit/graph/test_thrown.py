"""Which gradients are thrown away, in small training steps that are recorded in this process."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from warpline.rulekit.graph import graph_of
from warpline.rulekit.graph.thrown import Visits
from warpline.wire.dataflow import Dataflow

Step = Callable[[], None]


def recorded(step: Step) -> Dataflow:
    """Two steps, as the survey records them."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    files = UserFiles([str(Path(__file__).parent)], [])
    sites: Any = SimpleNamespace(user_files=files, names=QualifiedNames())
    first = Recording(sites)
    both = [(first, True), (Recording(sites, gradients=first.gradients), False)]
    flows = []
    for recording, watching in both:
        recording.start()
        step()
        flows.append(recording.stop(watching))
    found: Dataflow = first.with_gradients(flows[0])
    assert "grad" not in vars(nn.Parameter)
    assert "retain_grad" not in vars(torch.Tensor)
    return found


def thrown(step: Step) -> tuple[set[str], set[str]]:
    """The text of the lines whose operators lead to such gradients alone, and of those whose weights get
    some beside others."""
    visits = Visits(graph_of(recorded(step)))
    text = inspect.getsource(inspect.getmodule(step)).splitlines()  # type: ignore[arg-type]

    def lines(nodes: Any, among: Any, weighted: bool) -> set[str]:
        frames = {visits.only(among, node, weighted=weighted) for node in nodes} - {None}
        return {text[visits.flow.frames[frame].line - 1].strip() for frame in frames if frame is not None}

    alone = {node for one in visits.found for node in visits.reading(one.alone, one.parameters)}
    beside = [lines(visits.reading(one.beside, one.parameters), one.whole, True) for one in visits.by_call]
    return lines(alone, visits.alone, False), set().union(*beside)


def make(*sizes: int) -> nn.Sequential:
    layers = [(nn.Linear(a, b), nn.Tanh()) for a, b in itertools.pairwise(sizes)]
    return nn.Sequential(*(one for layer in layers for one in layer))


def sgd(*parts: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD([one for part in parts for one in part.parameters()], lr=0.1)


class Pair:
    """A generator and a critic with an optimizer each."""

    def __init__(self) -> None:
        self.net, self.critic = make(4, 6, 5), make(5, 6, 1)
        self.of_net, self.of_critic = sgd(self.net), sgd(self.critic)

    def made(self) -> Tensor:
        return self.net(torch.randn(3, 4))  # type: ignore[no-any-return]

    def update(self, loss: Tensor, optimizer: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def generator_turn(self) -> None:
        self.critic.requires_grad_(False)
        verdict = self.critic(self.made()).mean()
        self.update(-verdict, self.of_net)
        self.critic.requires_grad_(True)


def test_a_fake_that_is_not_detached() -> None:
    pair = Pair()

    def step() -> None:
        real = torch.randn(3, 5)
        fake = pair.made()
        pair.update(pair.critic(fake).mean() - pair.critic(real).mean(), pair.of_critic)
        pair.generator_turn()

    assert thrown(step) == ({"fake = pair.made()"}, set())


def test_a_fake_that_is_detached() -> None:
    pair = Pair()

    def step() -> None:
        fake = pair.made().detach()
        pair.update(pair.critic(fake).mean(), pair.of_critic)
        with torch.no_grad():
            fake = pair.made()
        pair.update(pair.critic(fake).mean(), pair.of_critic)
        pair.generator_turn()

    assert thrown(step) == (set(), set())


def test_a_critic_that_is_not_frozen_below_the_generators_loss() -> None:
    pair = Pair()

    def step() -> None:
        pair.critic.zero_grad(set_to_none=False)
        pair.critic(pair.made().detach()).mean().backward()
        pair.of_critic.step()
        verdict = pair.critic(pair.made()).mean()
        pair.update(-verdict, pair.of_net)

    assert thrown(step) == (set(), {"verdict = pair.critic(pair.made()).mean()"})


class Judge(nn.Module):
    """Joins what it is given before it reads any weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = make(9, 6, 1)

    def forward(self, given: Tensor, made: Tensor) -> Tensor:
        return self.layers(torch.cat([given, made], -1)).squeeze(-1)  # type: ignore[no-any-return]


def test_a_judge_that_reads_no_weights_at_first() -> None:
    net, judge = make(4, 6, 5), Judge()
    of_net, of_judge = sgd(net), sgd(judge)

    def update(loss: Tensor, optimizer: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def step() -> None:
        given = torch.randn(3, 4)
        update(judge(given, torch.randn(3, 5)).mean(), of_judge)
        worth = judge(given, net(given))
        update(-worth.mean(), of_net)

    assert thrown(step) == (set(), {"worth = judge(given, net(given))"})


def test_an_encoder_that_another_loss_trains() -> None:
    encoder, actor, critic = make(4, 6), make(6, 2), make(8, 1)
    of_critic, of_actor = sgd(encoder, critic), sgd(actor)

    def step() -> None:
        states = torch.randn(3, 4)
        value = critic(torch.cat([encoder(states), torch.randn(3, 2)], 1)).mean()
        of_critic.zero_grad()
        value.backward()
        of_critic.step()
        seen = encoder(states)
        action = actor(seen)
        of_actor.zero_grad()
        wanted = critic(torch.cat([seen, action], 1)).mean()
        wanted.neg().backward()
        of_actor.step()

    alone, beside = thrown(step)
    assert alone == {"seen = encoder(states)"}
    assert beside == {"wanted = critic(torch.cat([seen, action], 1)).mean()"}


def accumulating(pair: Pair) -> Step:
    def step() -> None:
        pair.of_net.zero_grad()
        pair.of_critic.zero_grad()
        for _ in range(2):
            pair.critic(pair.made()).mean().backward()
        pair.of_critic.step()
        pair.of_net.step()

    return step


def clipping(pair: Pair) -> Step:
    def step() -> None:
        pair.of_critic.zero_grad()
        pair.critic(pair.made()).mean().backward()
        nn.utils.clip_grad_norm_([*pair.net.parameters(), *pair.critic.parameters()], 1.0)
        pair.of_critic.step()
        pair.generator_turn()

    return step


def logging(pair: Pair) -> Step:
    norms = []

    def step() -> None:
        pair.of_critic.zero_grad()
        pair.critic(pair.made()).mean().backward()
        norms.append(sum(one.grad.norm() for one in pair.net.parameters() if one.grad is not None))
        pair.of_critic.step()
        pair.generator_turn()

    return step


def seldom(pair: Pair) -> Step:
    def step() -> None:
        pair.of_net.zero_grad()
        pair.of_critic.zero_grad()
        pair.critic(pair.made()).mean().backward()
        pair.of_critic.step()  # the other one makes a step in each fourth round

    return step


def seldom_seen(pair: Pair) -> Step:
    rounds = [0]

    def step() -> None:
        pair.of_net.zero_grad()
        pair.of_critic.zero_grad()
        pair.critic(pair.made()).mean().backward()
        pair.of_critic.step()
        rounds[0] += 1
        if rounds[0] % 2 == 0:
            pair.of_net.step()

    return step


def kept_graph(pair: Pair) -> Step:
    def step() -> None:
        fake = pair.made()
        pair.of_critic.zero_grad()
        pair.critic(fake).mean().backward(retain_graph=True)
        pair.of_critic.step()
        pair.of_net.zero_grad()
        pair.critic.requires_grad_(False)
        pair.critic(fake).mean().neg().backward()
        pair.critic.requires_grad_(True)
        pair.of_net.step()

    return step


def penalty(pair: Pair) -> Step:
    def step() -> None:
        fake = pair.made()
        score = pair.critic(fake).mean()
        (slope,) = torch.autograd.grad(score, fake, create_graph=True)
        pair.update(score + slope.square().mean(), pair.of_critic)
        pair.generator_turn()

    return step


def penalty_of_a_detached_one(pair: Pair) -> Step:
    def step() -> None:
        mixed = (0.5 * torch.randn(3, 5) + 0.5 * pair.made().detach()).requires_grad_()
        score = pair.critic(mixed).mean()
        (slope,) = torch.autograd.grad(score, mixed, create_graph=True)
        pair.update(score + slope.square().mean(), pair.of_critic)
        pair.generator_turn()

    return step


def hooked(pair: Pair) -> Step:
    seen: list[Tensor] = []
    for one in pair.net.parameters():
        one.register_hook(seen.append)

    def step() -> None:
        pair.update(pair.critic(pair.made()).mean(), pair.of_critic)
        pair.generator_turn()

    return step


def looked_at(pair: Pair) -> Step:
    def step() -> None:
        fake = pair.made()
        fake.retain_grad()
        pair.update(pair.critic(fake).mean(), pair.of_critic)
        pair.generator_turn()

    return step


def by_hand(pair: Pair) -> Step:
    def step() -> None:
        pair.critic(pair.made()).mean().backward()
        with torch.no_grad():
            for one in (*pair.critic.parameters(), *pair.net.parameters()):
                if one.grad is not None:
                    one.sub_(0.1 * one.grad)
                    one.grad = None

    return step


def adapting(pair: Pair) -> Step:
    """A step of MAML."""

    def step() -> None:
        x = torch.randn(3, 4)
        (weight, bias) = pair.net[0].parameters()
        inner = nn.functional.linear(x, weight, bias).square().mean()
        slopes = torch.autograd.grad(inner, [weight, bias], create_graph=True)
        outer = nn.functional.linear(x, weight - 0.1 * slopes[0], bias - 0.1 * slopes[1]).mean()
        pair.update(outer, pair.of_net)
        pair.update(pair.critic(torch.randn(3, 5)).mean(), pair.of_critic)

    return step


def saliency(pair: Pair) -> Step:
    def step() -> None:
        image = torch.randn(3, 4, requires_grad=True)
        pair.critic(pair.net(image)).max().backward()
        weight = image.grad.abs() if image.grad is not None else image
        pair.of_net.zero_grad()
        pair.of_critic.zero_grad()
        pair.critic(pair.net(weight.detach())).mean().backward()
        pair.of_net.step()
        pair.of_critic.step()

    return step


def attack(pair: Pair) -> Step:
    def step() -> None:
        images, shift = torch.randn(3, 5), torch.zeros(3, 5)
        for _ in range(2):
            shift = shift.detach().requires_grad_()
            pair.critic(images + shift).mean().backward()
            shift = shift + shift.grad.sign() if shift.grad is not None else shift
        pair.update(pair.critic(images + shift.detach()).mean(), pair.of_critic)

    return step


def free_attack(pair: Pair) -> Step:
    """The gradients of the attack's passes train the weights as well."""
    images = torch.randn(3, 5)

    def step() -> None:
        shift = torch.zeros(3, 5)
        pair.of_critic.zero_grad()
        for _ in range(2):
            shift = shift.detach().requires_grad_()
            pair.critic(images + shift).mean().backward()
            shift = shift + shift.grad.sign() if shift.grad is not None else shift
        pair.of_critic.step()

    return step


def shared(pair: Pair) -> Step:
    """The critic's optimizer trains a layer of the generator as well."""
    optimizer = sgd(pair.critic, pair.net[0])

    def step() -> None:
        pair.update(pair.critic(pair.net[2](pair.net[0](torch.randn(3, 4)))).mean(), optimizer)
        pair.generator_turn()

    return step


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


def through_a_function(pair: Pair) -> Step:
    """The generator's input comes from the critic, through a function that autograd sees as one operator."""

    def step() -> None:
        seen = Doubled.apply(pair.critic[0](torch.randn(3, 5)))
        pair.update(pair.critic(pair.net(seen[:, :4])).mean(), pair.of_critic)
        pair.generator_turn()

    return step


@pytest.mark.parametrize(
    "made",
    [
        accumulating, clipping, logging, seldom, seldom_seen, kept_graph, penalty, penalty_of_a_detached_one,
        hooked, looked_at, by_hand, adapting, free_attack,
    ],
)  # fmt: skip
def test_gradients_that_are_needed(made: Callable[[Pair], Step]) -> None:
    assert thrown(made(Pair())) == (set(), set())


def test_passes_for_a_tensor_of_the_scripts_own() -> None:
    line = "pair.critic(images + shift).mean().backward()"
    assert thrown(attack(Pair())) == (set(), {line})
    assert thrown(saliency(Pair())) == (set(), {"pair.critic(pair.net(image)).max().backward()"})


def test_the_passes_of_one_call_are_one() -> None:
    visits = Visits(graph_of(recorded(attack(Pair()))))
    (one,) = visits.by_call
    assert len(visits.found) == 2
    assert one.beside == visits.found[0].beside | visits.found[1].beside
    assert len(visits.leaves(one.backward)) == 1


def test_a_generator_that_leads_to_the_critic_is_needed() -> None:
    alone, beside = thrown(through_a_function(Pair()))
    assert alone == set()
    assert beside == {"pair.update(pair.critic(pair.net(seen[:, :4])).mean(), pair.of_critic)"}


def test_a_layer_that_both_optimizers_have_is_trained() -> None:
    alone, beside = thrown(shared(Pair()))
    assert alone == set()
    assert beside == {
        "pair.update(pair.critic(pair.net[2](pair.net[0](torch.randn(3, 4)))).mean(), optimizer)"
    }


def cast_once(together: bool) -> bool:
    """Whether the weights that both turns read are cast for both, in one region of autocast or in two."""
    pair = Pair()

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            fake = pair.made()
            pair.update(pair.critic(fake).mean(), pair.of_critic)
            if together:
                pair.generator_turn()
        if not together:
            pair.generator_turn()

    visits = Visits(graph_of(recorded(step)))
    assert visits.alone
    return visits.shares_casts


def test_views_of_weights_are_made_by_each_call() -> None:
    pair = Pair()

    def step() -> None:
        pair.update(pair.critic(pair.made()).mean(), pair.of_critic)
        pair.generator_turn()

    visits = Visits(graph_of(recorded(step)))
    assert visits.alone
    assert not visits.shares_casts


def test_views_of_weights_without_a_graph_are_no_tensors_of_the_scripts_own() -> None:
    pair = Pair()

    def step() -> None:
        with torch.no_grad():
            fake = pair.made()
        pair.update(pair.critic(fake).mean(), pair.of_critic)
        pair.update(pair.critic(pair.made()).mean(), pair.of_net)

    visits = Visits(graph_of(recorded(step)))
    (one,) = visits.found
    assert not visits.leaves(one.backward)


def test_weights_that_autocast_casts_once_for_both_turns() -> None:
    assert cast_once(together=True)
    assert not cast_once(together=False)
