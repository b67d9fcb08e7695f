"""Which operator got which tensors, recorded from real scripts."""

from __future__ import annotations

import contextlib
import linecache
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture.launching import Captured, request, write
from warpline.rulekit.graph import graph_of
from warpline.rulekit.graph.unheld import of_unheld
from warpline.wire.dataflow import LIBRARY, MODULE, OPTIMIZER, Dataflow

torch = pytest.importorskip("torch")

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.GELU())
words = nn.Embedding(50, 16)
opt = torch.optim.SGD([*net.parameters(), *words.parameters()], 0.1)
x = torch.randn(4, 8, 16)
ids = 1 + torch.arange(40).view(4, 10)
for row, end in enumerate((10, 3, 8, 5)):
    ids[row, end:] = 0

def attend(x):
    scores = torch.einsum("btd,bsd->bts", x, x) * 0.25
    scores.tril_()
    return torch.einsum("bts,bsd->btd", scores.softmax(-1), x)

for step in range(40):
    with torch.no_grad():
        again = attend(x)
    loss = (net(again + torch.rand_like(x)) ** 2).mean() + words(ids).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("loss", loss.item())
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("dataflow")
    return Captured(request(write(folder, SCRIPT), whole_run=True), folder)


def rows(flow: Dataflow, name: str) -> list[int]:
    return [row for row, index in enumerate(flow.name) if flow.names[index].startswith(f"aten.{name}")]


def test_padding_of_what_an_embedding_looked_up(captured: Captured) -> None:
    flow = captured.facts.dataflow
    (found,) = flow.padding
    assert (found.rows, found.columns, found.padded, found.shared) == (4, 10, 14, 0)
    assert not found.leading
    assert "words(ids)" in SCRIPT.splitlines()[flow.sites[found.site].line - 1]


@pytest.mark.parametrize(
    ("indices", "counted"),
    [
        ([[1, 2, 3, 0], [4, 0, 0, 0]], (4, 1)),
        ([[0, 2, 3, 4], [0, 0, 0, 4]], (4, 1)),  # filled up at the beginning
        ([[1, 2, 3, 4], [4, 3, 2, 1]], None),
        ([[0, 1, 0, 1], [1, 0, 1, 0]], None),  # a value like any other
        ([[0, 0, 0, 0], [0, 0, 0, 0]], None),  # nothing but one value: made up, not padded
        ([[0, 1, 2, 3], [0, 1, 2, 3]], None),  # positions
    ],
)
def test_what_counts_as_padding(indices: list[list[int]], counted: tuple[int, int] | None) -> None:
    from warpline.capture.runner.dataflow.padding import counted_in

    assert counted_in(torch.tensor(indices)) == counted


def test_values_lead_from_operator_to_operator(captured: Captured) -> None:
    flow = captured.facts.dataflow
    assert flow.missing == ""
    (scale,), (tril,), (softmax,) = rows(flow, "mul.Tensor"), rows(flow, "tril_"), rows(flow, "_softmax")
    assert flow.arguments[scale][1] == 0.25
    assert flow.arguments[tril][0] == f"%{flow.outputs[scale][0]}"
    # What was changed in place is another value, and the one that is read next.
    assert flow.outputs[tril] != flow.outputs[scale]
    assert flow.arguments[softmax][0] == f"%{flow.outputs[tril][0]}"
    assert flow.shapes[flow.shape[flow.outputs[softmax][0]]] == (4, 8, 8)


def test_an_operator_has_its_line_and_the_way_to_it(captured: Captured) -> None:
    flow, lines = captured.facts.dataflow, SCRIPT.split("\n")
    (scale,), (gelu,) = rows(flow, "mul.Tensor"), rows(flow, "gelu")
    at = flow.sites[flow.site[scale]]
    assert "* 0.25" in lines[at.line - 1]
    assert (at.function, at.via) == ("attend", "")
    assert flow.sites[flow.site[gelu]].via == MODULE
    assert LIBRARY not in {site.via for site in flow.sites}
    assert OPTIMIZER in {site.via for site in flow.sites}
    assert not rows(flow, "gelu_backward")


def test_the_script_computes_what_it_would_without_us(captured: Captured, tmp_path: Path) -> None:
    plain = subprocess.run(
        [sys.executable, write(tmp_path, SCRIPT)], capture_output=True, text=True, check=True, timeout=120
    )
    losses = [line for line in captured.output.splitlines() if line.startswith("loss")]
    # Short scripts run twice.
    assert losses[:40] == losses[-40:] == plain.stdout.splitlines()


def record(act: Callable[[], Any], optimizers: Callable[[], Any] = list) -> Dataflow:
    """``act`` under the mode, in this process."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    files = UserFiles([str(Path(__file__).parent)], [])
    sites: Any = SimpleNamespace(user_files=files, names=QualifiedNames())
    recording = Recording(sites, optimizers)
    recording.start()
    try:
        act()
    finally:
        found: Dataflow = recording.stop()
    return found


def test_parameters_that_no_optimizer_has() -> None:
    teacher, student, frozen = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
    frozen.requires_grad_(False)
    x = torch.randn(2, 3)
    given = torch.randn(2, 3, requires_grad=True)
    optimizer = torch.optim.SGD(student.parameters(), 0.1)

    def shapes(act: Callable[[], Any], optimizers: Callable[[], Any] = lambda: [optimizer]) -> list[Any]:
        flow = record(act, optimizers)
        assert set(flow.unheld) <= set(flow.parameters)
        return [flow.shapes[flow.shape[value]] for value in flow.unheld]

    def step(x: Any = x) -> None:
        (teacher(x) - student(x) + frozen(x)).sum().backward()
        optimizer.step()

    def by_hand() -> None:
        step()
        with torch.no_grad():
            for parameter in teacher.parameters():
                parameter.sub_(0.1)

    def follow(*more: torch.Tensor) -> None:
        with torch.no_grad():
            for parameter, other in zip(teacher.parameters(), student.parameters(), strict=True):
                parameter.mul_(0.99).add_(other, alpha=0.01)
                for one in more:
                    parameter.add_(one)

    def following(*more: torch.Tensor) -> Callable[[], None]:
        return lambda: (follow(*more), step())[1]

    assert shapes(step) == [(4, 3), (4,)]
    assert shapes(by_hand) == []  # the step itself changes them
    assert set(shapes(following())) == {(4, 3), (4,)}  # a momentum encoder
    assert of_unheld(graph_of(record(following(), lambda: [optimizer]))).shares
    assert shapes(following(torch.zeros(1))) == []  # by something else, too
    assert shapes(lambda: step(given)) == []  # the gradients go to what was given
    assert shapes(step, lambda: None) == shapes(step, list) == []  # not all optimizers are known; none is


def test_a_tensor_that_an_optimizer_has_is_what_gradients_are_for() -> None:
    judge, body = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
    picture = torch.randn(2, 3, requires_grad=True)
    painter, trainer = torch.optim.SGD([picture], 0.1), torch.optim.SGD(body.parameters(), 0.1)

    def paint() -> None:
        judge(picture).sum().backward()

    def found(*optimizers: Any) -> Dataflow:
        return record(paint, lambda: list(optimizers))

    assert len(found(painter).unheld) == len(found(painter, trainer).unheld) == 2
    assert not found(trainer).unheld
    assert not of_unheld(graph_of(found(painter))).shares  # the picture's gradient goes through it


def test_a_script_without_an_optimizer_wants_the_gradient_of_its_own_tensor() -> None:
    judge, noise = torch.nn.Linear(3, 4), torch.randn(2, 3, requires_grad=True)

    def unheld(after: Callable[[], Any], optimizers: list[Any]) -> int:
        def ascend() -> None:
            judge(noise).sum().backward()
            with torch.no_grad():
                noise.add_(noise.grad)
            after()

        return len(record(ascend, lambda: optimizers).unheld)

    assert unheld(judge.zero_grad, []) == 2
    assert unheld(lambda: judge.weight.grad, []) == 1
    assert unheld(lambda: judge.weight.data.sub_(judge.weight.grad), []) == 1  # a step by hand
    assert unheld(judge.zero_grad, [torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), 0.1)]) == 0


def test_what_a_policy_did_without_a_graph_is_not_trained_by_what_learns_from_it() -> None:
    policy, judge = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    slow = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*policy.parameters(), *judge.parameters()], 0.1)

    def scored(by: Any, place: torch.Tensor) -> Any:
        return by(place)

    def calls(acting: Callable[[], Any]) -> list[str]:
        """The code of the lines that call such parts alone, though a line of ``scored`` runs others, too."""

        def step() -> None:
            with acting():
                place = policy(torch.randn(2, 3)).tanh()
            goal = scored(slow, place)
            (scored(judge, policy(place)) - goal).sum().backward()
            optimizer.step()

        found = of_unheld(graph_of(record(step, lambda: [optimizer]))).calls
        return [linecache.getline(*place).strip() for place in found]

    assert calls(torch.no_grad) == ["goal = scored(slow, place)"]
    assert calls(contextlib.nullcontext) == []  # gradients go through it to the policy


def test_parameters_whose_gradients_are_read_are_needed() -> None:
    frozen, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(head.parameters(), 0.1)

    def unheld(between: Callable[[], Any]) -> int:
        def step() -> None:
            head(frozen(torch.randn(2, 3))).sum().backward()
            between()
            optimizer.step()
            frozen.zero_grad(set_to_none=False)
            optimizer.zero_grad()

        return len(record(step, lambda: [optimizer]).unheld)

    parts = torch.nn.ModuleList([frozen, head])
    assert unheld(lambda: None) == 2
    assert unheld(lambda: torch.nn.utils.clip_grad_norm_(parts.parameters(), 1.0)) == 0
    assert unheld(lambda: frozen.weight.grad) == 1
    kept = frozen.bias.register_hook(lambda gradient: None)
    assert unheld(lambda: None) == 1
    kept.remove()


UNTRAINED = """
import torch
from torch import nn

def bank():
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU())

class Likeness(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = bank().eval()  # here
        self.scale = nn.Linear(16, 16)

    def forward(self, x):
        return self.scale(self.bank(x)).mean()

body, likeness = nn.Linear(16, 16), Likeness()
opt = torch.optim.SGD(body.parameters(), 0.1)
for step in range(40):
    loss = likeness(body(torch.randn(8, 16)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("line", "class_name", "weights"),
    [
        ("        self.bank = bank().eval()  # here", "Sequential", 2),
        ("body, likeness = nn.Linear(16, 16), Likeness()", "Likeness", 4),
    ],
)
def test_where_the_script_says_that_it_does_not_train_a_module(
    tmp_path: Path, line: str, class_name: str, weights: int
) -> None:
    text = UNTRAINED if class_name == "Sequential" else UNTRAINED.replace(".eval()", "")
    found = Captured(request(write(tmp_path, text)), tmp_path).facts.sites
    sites = [site for site in found if site.kind == "untrained"]
    assert text.split("\n")[sites[0].line - 1] == line
    assert (sites[0].facts["type"], sites[0].facts["weights"]) == (class_name, weights)
    others = [] if class_name == "Likeness" else [("Linear", 2)]  # `scale`, which is made on its own
    assert [(one.facts["type"], one.facts["weights"]) for one in sites[1:]] == others


BESIDE = """
import copy
import sys
import torch
from torch import nn

sys.path.insert(0, "site-packages")
from library import build

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.second(self.first(x))

class Holder(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)

def check(net):
    return net.eval()

MADE
opt = torch.optim.SGD(pupil.parameters(), 0.1)
for step in range(40):
    loss = (pupil.train()(torch.randn(8, 16)) - teacher(torch.randn(8, 16))).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
INSTALLED = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(16, 16))
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("pupil = Net()\nteacher = copy.deepcopy(pupil)  # here", ("Net", False, False, ["teacher"])),
        ("pupil = Net()\nteacher = build()  # here", ("Sequential", False, False, ["teacher"])),
        ("pupil = Net()\nteacher = Holder(build())  # here", ("Holder", False, False, ["teacher"])),
        (
            "both = Holder(None)\nboth.body = build()  # here\npupil, teacher = Net(), both.body",
            ("Sequential", False, False, ["Holder.body", "teacher"]),
        ),
        (
            "pupil, teacher = Net(), nn.Sequential()\nteacher.append(Net())  # here",
            ("Net", False, False, ["Sequential.0"]),
        ),
        ("teacher, pupil = Net(), Net()  # here", ("Net", False, True, ["teacher"])),
        ("teacher = Net()  # here\npupil = copy.deepcopy(teacher)", ("Net", False, True, ["teacher"])),
        ("teacher = nn.Linear(16, 16).eval()  # here\npupil = Net()", ("Linear", True, False, ["teacher"])),
        (
            "teacher, pupil = nn.Linear(16, 16).eval(), Net().eval()  # here",
            ("Linear", False, False, ["teacher"]),
        ),
        (
            "teacher, pupil = nn.Linear(16, 16), Net()  # here\ncheck(teacher)",
            ("Linear", False, False, ["teacher"]),
        ),
        ("teacher, pupil = nn.Linear(16, 16), Net()\nteacher.requires_grad_()", None),
    ],
)
def test_where_the_script_got_a_module_that_it_does_not_train(
    tmp_path: Path, made: str, found: tuple[str, bool, bool, list[str]] | None
) -> None:
    (tmp_path / "site-packages").mkdir()
    write(tmp_path / "site-packages", INSTALLED, "library.py")
    text = BESIDE.replace("MADE", made).replace('"site-packages"', repr(str(tmp_path / "site-packages")))
    sites = Captured(request(write(tmp_path, text)), tmp_path).facts.sites
    noted = [site for site in sites if site.kind == "untrained"]
    names = ("type", "evaluated", "shared", "held")
    assert [tuple(site.facts[name] for name in names) for site in noted] == ([found] if found else [])
    for site in noted:
        assert text.split("\n")[site.line - 1].endswith("  # here")


ADAPTED = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(self.up(x).relu())

class Encoder(nn.Module):
    def __init__(self, head=None):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.layers = nn.Sequential(Layer(), Layer())
        self.head = head

    def forward(self, x):
        x = self.layers(self.first(x))
        return x if self.head is None else self.head(x)

class Adapter(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.own = inner, nn.Linear(8, 16)

    def forward(self, x):
        return self.inner(x) + self.own(x)

def adapt(encoder):
    for layer in encoder.layers:
        layer.up = Adapter(layer.up)
    return encoder

BEFORE
body = MADE
trained = [one for name, one in body.named_parameters() if ".own." in name or TRAINED in name]
opt = torch.optim.SGD(trained, 0.1)
for step in range(40):
    loss = body(torch.randn(4, 8)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("before", "made", "trained", "found"),
    [
        ("pass", "adapt(Encoder())", "none", True),
        ("pass", "adapt(Encoder())", "layers.1.down", False),
        ("pass", "adapt(Encoder(nn.Linear(8, 8)))", "head", False),  # it was there before
        ("early = Layer()", "adapt(Encoder())", "none", True),
        ("early = Layer()", "adapt(Encoder())", "down", False),
        (
            "early = Adapter(nn.Linear(8, 16))",
            "adapt(Encoder())",
            "none",
            False,
        ),  # when were the others made?
    ],
)
def test_a_module_that_is_not_trained_but_for_what_was_added_to_it(
    tmp_path: Path, before: str, made: str, trained: str, found: bool
) -> None:
    text = ADAPTED.replace("BEFORE", before).replace("MADE", made).replace("TRAINED", f'"{trained}"')
    sites = Captured(request(write(tmp_path, text)), tmp_path).facts.sites
    noted = [(one.facts["type"], one.facts["weights"]) for one in sites if one.kind == "untrained"]
    if found:
        assert noted == [("Encoder", 10)]
        (line,) = (one.line for one in sites if one.kind == "untrained")
        assert text.split("\n")[line - 1] == f"body = {made}"
    else:
        assert noted
        assert "Encoder" not in dict(noted)
        shared = {one.facts["type"] for one in sites if one.kind == "untrained" and one.facts["shared"]}
        assert shared == ({"Linear"} if "down" in trained else set())  # its line makes trained ones, too


def test_what_becomes_of_gradients_and_where() -> None:
    net, other = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
    first, second = torch.optim.SGD(net.parameters(), 0.1), torch.optim.SGD(other.parameters(), 0.1)

    def step() -> None:
        made = net(torch.randn(2, 3))
        other(made).sum().backward()
        second.step()
        first.zero_grad()
        with torch.no_grad():
            net(torch.randn(2, 3))
        torch.autograd.grad(net(torch.randn(2, 3)).sum(), net.weight)

    flow = record(step)
    backward, grad = flow.passes
    shapes = [[flow.shapes[flow.shape[one]] for one in of] for of in (backward.read, backward.cleared)]
    assert shapes == [[(1, 4), (1,)] * 2, [(4, 3), (4,)]]  # the optimizer gave the first ones new values
    assert [flow.shapes[flow.shape[one]] for one in grad.inputs] == [(4, 3)]
    assert not grad.read + grad.cleared + grad.left
    start, products = step.__code__.co_firstlineno, rows(flow, "addmm")
    frames = [flow.frames[flow.stacks[flow.stack[row]][1]] for row in products]
    assert [frame.line - start for frame in frames] == [1, 2, 6, 7]
    assert [row in flow.ungraphed for row in products] == [False, False, True, False]
    made = frames[0]
    if sys.version_info >= (3, 11):
        assert made.span == (start + 1, 15, 37)  # the call, without what it is assigned to


def test_steps_on_other_threads_are_said_to_be_missing() -> None:
    def act() -> None:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1)
        thread.start()
        thread.join()

    assert "threads" in record(act).missing


def test_a_higher_order_operator_runs_and_ends_the_record() -> None:
    from torch._ops import HigherOrderOperator

    call = HigherOrderOperator.__call__

    class Twice(HigherOrderOperator):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("warpline_test_twice")

        def __call__(self, value: Any) -> Any:
            return super().__call__(value)

    twice = Twice()
    twice.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(lambda value: value * 2)
    twice.fallthrough(torch._C.DispatchKey.AutogradCPU)
    results: list[Any] = []
    flow = record(lambda: results.append(twice(torch.ones(2))))
    assert results[0].tolist() == [2, 2]
    assert "higher-order" in flow.missing
    assert HigherOrderOperator.__call__ is call


def test_a_tensor_that_cannot_be_read_ends_the_record_only() -> None:
    results: list[Any] = []
    opaque = torch.eye(3).to_mkldnn()  # it has no storage
    flow = record(lambda: results.append(opaque.to_dense() @ torch.ones(3, 2)))
    assert results[0].shape == (3, 2)
    assert "could not be read" in flow.missing


def test_a_sparse_tensor_stands_for_its_values() -> None:
    links = torch.eye(3).to_sparse()
    flow = record(lambda: torch.sparse.mm(links * 2, torch.ones(3, 2)))
    assert not flow.missing
    (made,), (product,) = rows(flow, "mul"), rows(flow, "_sparse_addmm")
    (twice,) = flow.outputs[made]
    assert flow.shapes[flow.shape[twice]] == (3,)
    assert f"%{twice}" in flow.arguments[product]


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ("2.5", [[2.5]]),
        ("float('inf')", [["inf"]]),
        ("torch.tensor(2.5)", []),  # it may be another one in the next step
    ],
)
def test_a_number_that_is_written_into_a_tensor_is_recorded(given: str, numbers: list[list[Any]]) -> None:
    def act() -> None:
        code = f"def act(x):\n    x[x == 0] = {given}\n    x[[0, 2]] = {given}\nact(torch.zeros(4))"
        exec(compile(code, str(Path(__file__).parent / "act.py"), "exec"), {"torch": torch})

    flow = record(act)
    assert not flow.missing
    assert [flow.arguments[row] for row in rows(flow, "scalar_tensor")] == numbers * 2


def test_ctc_loss_is_called_without_the_mode_and_recorded_as_one_operator() -> None:
    """Under a mode torch computes with its lengths, and on a GPU then refuses those on the CPU."""

    def gradient() -> Any:
        torch.manual_seed(0)
        scores = torch.randn(20, 2, 5, requires_grad=True)
        lengths = torch.tensor([20, 16]), torch.tensor([3, 2])
        loss = torch.nn.functional.ctc_loss(scores.log_softmax(-1), torch.randint(1, 5, (2, 4)), *lengths)
        loss.backward()
        return scores.grad

    plain = torch.ctc_loss
    seen: list[Any] = []
    flow = record(lambda: seen.append(gradient()))
    assert torch.equal(seen[0], gradient())
    assert torch.ctc_loss is plain
    (loss,) = rows(flow, "ctc_loss")
    (scores,) = rows(flow, "_log_softmax")
    assert flow.arguments[loss][0] == f"%{flow.outputs[scores][0]}"
    assert not rows(flow, "_ctc_loss")


def test_ctc_loss_below_a_mode_of_the_scripts_own_leaves_that_where_it_is() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

    class Own(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    own = Own()
    after: list[Any] = []

    def act() -> None:
        with own:
            lengths = torch.tensor([20, 16]), torch.tensor([3, 2])
            scores = torch.zeros(20, 2, 5).log_softmax(-1)
            torch.nn.functional.ctc_loss(scores, torch.ones(2, 4, dtype=torch.long), *lengths)
        after.extend(_get_current_dispatch_mode_stack())

    record(act)
    assert len(after) == 1
    assert own not in after
    assert not _get_current_dispatch_mode_stack()


def test_a_script_that_fails_because_it_is_recorded_is_measured_without(tmp_path: Path) -> None:
    script = """
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(60):
    if _get_current_dispatch_mode() is not None:
        raise RuntimeError("no modes here")
    net(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    captured = Captured(request(write(tmp_path, script)), tmp_path)
    assert "failed while its operators were recorded" in captured.facts.dataflow.missing
    assert any("RuntimeError in the step in which its operators" in note for note in captured.manifest.notes)


def test_a_mode_of_the_scripts_own_stays_on_the_stack() -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)

    def act() -> None:
        counter.__enter__()
        torch.ones(4, 4) @ torch.ones(4, 4)

    assert record(act).missing == ""
    assert [type(mode) for mode in _get_current_dispatch_mode_stack()][-1:] != []
    counter.__exit__(None, None, None)
    assert counter.get_total_flops() == 2 * 4**3
    assert not _get_current_dispatch_mode_stack()
