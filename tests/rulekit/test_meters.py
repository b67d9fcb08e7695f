"""Meters that scripts give a loss in each step: the value stays on the device until it is told."""

from __future__ import annotations

import pytest
import torch

from tests.annotated import read_example
from tests.rules.test_no_breakage import fixed, ran

METER = """\
class AverageMeter(object):
    \"\"\"As in the ImageNet example of PyTorch.\"\"\"
    def __init__(self, name, fmt=':f'):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float64)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = '{name} {val' + self.fmt + '} ({avg' + self.fmt + '})'
        return fmtstr.format(**self.__dict__)

    def summary(self):
        return '%s %.3f' % (self.name, self.avg)

    @property
    def mean(self):
        return self.sum / max(self.count, 1)

    def compute(self):
        return self.avg
"""
BOARD = """\
class ProgressMeter:
    def __init__(self, batches, meters, prefix=""):
        self.batches = batches
        self.meters = meters
        self.prefix = prefix

    def display(self, batch):
        entries = [self.prefix + str(batch)]
        entries += [str(meter) for meter in self.meters]
        print('\\t'.join(entries))

    def display_summary(self):
        for meter in self.meters:
            print(meter.summary(), meter.name, f"{meter.avg:.4f}")
"""
RUN = """\
#> totals idle_ms=8
import torch
{classes}
def run(loader, train, validate=False):
    losses = AverageMeter('Loss', ':.4e')
    times = AverageMeter('Time')
{before}
    for i, batch in enumerate(loader):
        loss = train(batch)  #> cost device_ms=12 idle_ms=8 step_ms=20
        losses.update({given})  #> cost calls=1 cpu_ms=9 sync_ms=9; {op}
        times.update(0.5)
{within}
    {after}
"""
OP = "op aten::item dtypes=float shapes=[[]] count=1"
SEEN = "        if i % 3 == 1:\n            {tell}  #> cost calls=0.2\n"


def code(
    tell: str = "pass",
    after: str = "return losses.avg",
    *,
    before: str = "    pass",
    within: str = SEEN,
    given: str = "loss.item(), 4",
    classes: str = METER + BOARD,
    op: str = OP,
) -> str:
    within = within.replace("{tell}", tell).rstrip("\n")
    return RUN.format(classes=classes, before=before, given=given, op=op, within=within, after=after)


def same(given: str) -> str:
    """The text after the edit, which prints and returns the same."""
    (text,) = fixed(given, "sync-in-step")
    assert "loss.detach()" in text, text
    torch.manual_seed(1)
    value = torch.randn(7)
    before, after = ran(read_example(given).text, value), ran(text, value)
    assert before == after
    assert repr(before) == repr(after)  # a number is one still
    return text


PROGRESS = "    progress = ProgressMeter(7, [times, losses], prefix='Epoch ')"


@pytest.mark.parametrize(
    ("tell", "after", "before"),
    [
        ("progress.display(i + 1)", "progress.display_summary(); return losses.avg", PROGRESS),
        ("print(losses)", "return losses.compute()", "    pass"),
        ("print(f'{losses.val:.4f} {losses.avg!s} {losses}')", "return losses.mean", "    pass"),
        ("print('{l.val:.4f} ({l.avg:.4f}) {a}'.format(l=losses, a=losses.avg))", "pass", "    pass"),
        ("print('%.3f %s' % (losses.avg, losses.sum))", "losses.all_reduce(); return losses.sum", "    pass"),
        ("losses.reset()", "return {'loss': losses.avg, 'n': losses.count}", "    losses.reset()"),
    ],
)
def test_it_is_read_where_it_is_told(tell: str, after: str, before: str) -> None:
    text = same(code(tell, after, before=before))
    assert "losses.update(loss.detach().double(), 4)\n" in text
    assert "losses.avg!s" not in text


def test_a_number_is_returned() -> None:
    assert "return float(losses.avg)" in same(code())
    assert "return float(losses.compute())" in same(code(after="return losses.compute()"))
    assert "if float(losses.avg) > 1" in same(code(after="if losses.avg > 1: return 'much'"))


def test_where_it_is_told_need_not_have_run_yet() -> None:
    text = same(
        code("print(losses.avg)  #> skipped").replace("return losses.avg", "return losses.avg  #> skipped")
    )
    assert "print(float(losses.avg))" in text


@pytest.mark.parametrize(
    ("given", "op", "written"),
    [
        ("loss.item() * 2, 4", OP, "loss.detach().double() * 2, 4"),
        ("loss.item() / 4", OP, "loss.detach().double() / 4"),
        ("n=4, val=loss.item()", OP, "n=4, val=loss.detach().double()"),
        ("loss.item()", OP.replace("[[]]", "[[1]]"), "loss.detach().squeeze().double()"),
        ("loss.item()", OP.replace("float", "double"), "loss.detach().clone()"),
    ],
)
def test_the_value_is_a_copy_without_dimensions_in_double_precision(
    given: str, op: str, written: str
) -> None:
    (text,) = fixed(code(given=given, op=op), "sync-in-step")
    assert f"losses.update({written})\n" in text


def changed(old: str, new: str) -> str:
    assert METER.count(old) == 1
    return METER.replace(old, new) + BOARD


@pytest.mark.parametrize(
    "classes",
    [
        changed("self.val = val", "self.val = val; self.values.append(val)"),
        changed("self.val = val", "self.most = max(self.most, val)"),
        changed("self.val = val", "self.val = val if val > 0 else 0"),
        changed("self.val = val", "self.val = val.item() if isinstance(val, torch.Tensor) else val"),
        changed("self.val = val", "self.sum = self.sum ** val"),
        changed("self.val = val", "self.val = self.clean(val)"),
        changed("self.val = val", "self.val = val; print(f'{val}')"),
        changed("self.count += n", "self.last = self.sum; self.count += n"),
        changed("self.count += n", "self.count += n; self.sum //= 2"),
        changed("self.count += n", "self.count += n; return self.sum"),
        changed("%s %.3f", "%s %s"),
        changed("{name} {val", "{name!r} {val"),
        changed("return self.avg", "return round(self.avg, 3)"),
        changed("return self.avg", "return json.dumps(self.__dict__)"),
        changed("return self.avg", "return vars(self)"),
        changed("return self.avg", "return self.avg > 0"),
        changed("return self.avg", "return torch.tensor([self.avg])"),
        METER.replace("(object)", "(Base)"),
        METER + "class Mine(AverageMeter):\n    pass\n",
        "@dataclass\n" + METER,
        "",
    ],
)
def test_a_class_that_does_more_than_arithmetic_gets_each_value(classes: str) -> None:
    (told,) = fixed(code(classes=classes), "sync-in-step")
    assert "No edit is offered" in told


@pytest.mark.parametrize(
    ("tell", "after", "before", "within"),
    [
        ("pass", "return losses", "    pass", SEEN),
        ("pass", "torch.save({'losses': losses}, 'x.pt')", "    pass", SEEN),
        ("pass", "json.dump(losses.__dict__, file)", "    pass", SEEN),
        ("pass", "kept = losses.compute", "    pass", SEEN),
        ("pass", "losses.avg += 1", "    pass", SEEN),
        ("pass", "pass", "    losses = other or losses", SEEN),
        ("pass", "pass", "    progress = Unknown([losses])", SEEN),
        ("pass", "save(progress)", PROGRESS, SEEN),
        ("pass", "pass", PROGRESS, "        progress.display(i)"),
        ("pass", "pass", PROGRESS, "        bar.set_postfix(loss=losses.avg)"),
        ("pass", "pass", PROGRESS, "        if losses.avg > 3:\n            print(i)"),
        ("print(f'{losses.avg=}')", "pass", "    pass", SEEN),
        ("print(losses)", "pass", "    pass", SEEN.replace("0.2", "1")),
    ],
)
def test_a_meter_that_is_handed_on_or_read_in_each_round(
    tell: str, after: str, before: str, within: str
) -> None:
    (told,) = fixed(code(tell, after, before=before, within=within), "sync-in-step")
    assert "No edit is offered" in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("str(meter)", "repr(meter.avg)"),
        ("str(meter)", "meter"),
        ("[str(meter) for meter in self.meters]", "list(map(str, self.meters))"),
        ('f"{meter.avg:.4f}"', "meter.avg"),
        ("self.prefix = prefix", "self.prefix = prefix; save(meters)"),
        ("class ProgressMeter:", "class ProgressMeter(Board):"),
    ],
)
def test_what_shows_the_meters_shows_texts_only(old: str, new: str) -> None:
    assert BOARD.count(old) == 1
    classes = METER + BOARD.replace(old, new)
    (told,) = fixed(code("progress.display(i)", before=PROGRESS, classes=classes), "sync-in-step")
    assert "No edit is offered" in told


def test_a_library_may_have_a_class_of_that_name() -> None:
    given = code().replace("import torch\n", "import torch\nfrom {} import AverageMeter\n", 1)
    for name, offered in (("train", True), (".train", True), ("timm.utils", False)):
        (told,) = fixed(given.replace("{}", name, 1), "sync-in-step")
        assert ("loss.detach()" in told) is offered


def test_a_meter_of_the_file_may_be_used_in_two_modes() -> None:
    given = (
        "#> totals idle_ms=8\nimport torch\n"
        + METER
        + """\
losses = AverageMeter('Loss')
def run(loader, train):
    for batch in loader:
        loss = train(batch)  #> cost device_ms=12 idle_ms=8 step_ms=20
        losses.update(loss.item())  #> cost calls=1 cpu_ms=9 sync_ms=9
"""
    )
    (told,) = fixed(given, "sync-in-step")
    assert "losses.update(loss.detach().squeeze().double())" in told
    (told,) = fixed(given + "@torch.inference_mode()\ndef validate(): pass\n", "sync-in-step")
    assert "No edit is offered" in told


def test_a_whole_number_stays_one() -> None:
    whole = OP.replace("float", "long").replace("long", "int64")
    (told,) = fixed(code(op=whole), "sync-in-step")
    assert "a whole number" in told
    (text,) = fixed(code(op=whole, given="loss.item() / 4"), "sync-in-step")
    assert "loss.detach().double() / 4" in text
