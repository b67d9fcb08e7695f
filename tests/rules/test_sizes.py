"""A product's size is padded where the layer got it from: a number, or an expression that computes it."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import ANY

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.model.change import Change, MatmulRate, PadProducts, Replace, Together
from warpline.model.profile import Profile
from warpline.model.report import Predicted
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder

SCRIPT = """\
import torch
from torch import nn

codes = 8192
sizes = {"width": 8193, "pages": 8193}


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.head = nn.Linear(512, size + 1)  #> site module type=Linear in_features=512 out_features=8193

    def forward(self, x):
        x = self.down(x)
        #^ cost device_ms=4; op aten::mm device_ms=4 shapes=[[64,8193],[8193,512]] dtypes=c10::Half,c10::Half
        #^ node aten.mm.default args=[%4,%5] shape=[64,8193]; node aten.mm.default args=[%0,%6] shape=[64,512]
        #> tensor %4 shape=[64,512]; tensor %5 shape=[512,8193] parameter=true
        #> tensor %6 shape=[8193,512] parameter=true; tensor %7 shape=[512,8193] parameter=true
        return self.head(x)
        #^ cost device_ms=20; op aten::mm device_ms=15 shapes=[[64,512],[512,8193]] dtypes=c10::Half,c10::Half
        #^ node aten.mm.default args=[%1,%7] shape=[64,8193]
"""
POSITIONS = """\
from torch import nn
table = nn.Embedding(513, 768)  #> site module type=Embedding num_embeddings=513 embedding_dim=768

def attend(q, k, length=513):
    return q @ k.transpose(-2, -1)
    #^ cost device_ms=9; op aten::bmm device_ms=9 shapes=[[96,513,64],[96,64,513]] dtypes=c10::Half,c10::Half
"""
COMPUTED = Holder("computed", FILE, 11, SCRIPT.splitlines()[10].index("size + 1"))
ENTRY = Holder("entry", FILE, 5, SCRIPT.splitlines()[4].rindex("8193"), "pages")
OPTION = Holder("command line", FILE, 4, -1, "--codes")


def drafts(
    holder: Holder | None, script: str = SCRIPT, table_held: Holder | None = None
) -> tuple[str, list[Draft]]:
    example = read_example(script)
    facts = example.profile.facts
    argument = Argument("out_features", 8193, holder=holder)
    table = Argument("num_embeddings", 8193, holder=table_held or holder)
    (site,) = facts.sites
    width, depth = (Argument(name, 512) for name in ("in_features", "embedding_dim"))
    layers = [replace(site, arguments=both) for both in ((table, depth), (width, argument))]
    facts = replace(facts, sites=tuple(layers) if holder is not None else ())
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    context = Context(replace(example.profile, facts=facts), texts(example))
    return example.text, list(rule.find(context))


def test_a_computed_size_is_rounded_up_where_it_is_computed() -> None:
    text, (draft,) = drafts(COMPUTED)
    assert (draft.line, draft.cause.line) == (11, 15)
    assert "nn.Linear(512, -(-(size + 1) // 64) * 64)" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    ("code", "rounded"),
    [
        ("int(size * 16.002)", "-(-int(size * 16.002) // 64) * 64"),
        ("scaled(size)", "-(-scaled(size) // 64) * 64"),
        ("len(words)", None),
        ("table.shape[1]", None),
    ],
)
def test_a_call_is_rounded_up_but_nothing_that_reads_a_size(code: str, rounded: str | None) -> None:
    text, (draft,) = drafts(COMPUTED, SCRIPT.replace("size + 1", code))
    if rounded is None:
        assert not draft.fixes
    else:
        assert f"nn.Linear(512, {rounded})" in apply(text, draft.fixes[0].edits)


def test_all_products_of_one_size_are_one_finding() -> None:
    _, (draft,) = drafts(COMPUTED)
    assert draft.cost_ms == 19.0


def test_of_several_equal_numbers_the_layers_own_is_padded() -> None:
    text, (draft,) = drafts(ENTRY)
    assert draft.line == 5
    assert 'sizes = {"width": 8193, "pages": 8256}' in apply(text, draft.fixes[0].edits)


def test_a_size_in_a_text_that_the_script_reads_is_padded_there() -> None:
    script = SCRIPT.replace('{"width": 8193, "pages": 8193}', 'read("""\nwidth: 8193\npages: 8193\n""")')
    text, (draft,) = drafts(Holder("text", FILE, 7, 7, "pages"), script)
    assert draft.line == 7
    assert "width: 8193\npages: 8256\n" in apply(text, draft.fixes[0].edits)


def test_a_size_from_the_command_line_is_changed_there() -> None:
    _, (draft,) = drafts(OPTION)
    assert not draft.fixes
    assert "the command line passes `--codes`" in draft.message


def test_without_a_holder_the_only_such_number_would_be_padded() -> None:
    _, found = drafts(None)
    assert {draft.line for draft in found} == {14, 15}
    assert all("several places" in draft.message for draft in found)


OF_DATA = "tensor %3 shape=[64,8193]; node aten.abs.default args=[%3] shape=[64,8193]"
MADE = "node aten.mm.default args=[%4,%5] shape=[64,8193]"


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        ("node aten._fft_r2c.default args=[%4] shape=[64,8193]", "`_fft_r2c` makes a tensor of this size"),
        ("tensor %3 shape=[64,8193]; node aten.abs.default args=[%3] shape=[64,8193]", "data from outside"),
        (
            "tensor %3 shape=[3,64,8193] parameter=true; node aten.view.default args=[%3] shape=[64,24579]",
            "`view` divides it",
        ),
        ("node aten.native_group_norm.default args=[%5] shape=[64,8193]", "divides it into groups"),
    ],
)
def test_what_has_to_agree_with_a_size_keeps_it_from_being_changed(instead: str, reason: str) -> None:
    assert SCRIPT.count(MADE) == 1
    _, (draft,) = drafts(COMPUTED, SCRIPT.replace(MADE, instead))
    assert not draft.fixes
    assert reason in draft.message


@pytest.mark.parametrize("read", ["spectra.shape[1]", "len(bins)", "spectra.size(-1)"])
def test_a_size_that_is_read_off_the_data_is_told_at_the_layer(read: str) -> None:
    script = SCRIPT.replace("size + 1", "size") + f"\nnet = Net({read})\n"
    text, _ = drafts(None, script)
    holder = Holder("computed", FILE, len(text.splitlines()), len("net = Net("))
    # A layer alone can be longer than what it is read off, a list of words say.
    _, (draft,) = drafts(holder, script)
    assert draft.line == holder.line
    _, (draft,) = drafts(holder, script.replace(MADE, OF_DATA))
    assert (draft.line, draft.cause.line, draft.fixes) == (11, 15, ())
    assert "data from outside the model has this size" in draft.message
    assert "pad it, and the layers with it" in draft.message


def test_a_size_that_is_computed_from_the_data_s_is_told_where_it_is_computed() -> None:
    _, (draft,) = drafts(COMPUTED, SCRIPT.replace(MADE, OF_DATA))
    assert (draft.line, draft.fixes) == (11, ())


def test_a_layer_of_the_same_size_from_elsewhere_is_not_left_behind() -> None:
    _, (draft,) = drafts(COMPUTED, table_held=ENTRY)
    assert not draft.fixes
    assert "has this size too" in draft.message


def test_without_the_recorded_step_nothing_is_changed() -> None:
    bare = "\n".join(line for line in SCRIPT.splitlines() if "tensor %" not in line and "node " not in line)
    _, (draft,) = drafts(COMPUTED, bare)
    assert not draft.fixes
    assert "does not show" in draft.message


def test_a_table_of_positions_is_not_what_the_scores_are_long_by() -> None:
    example = read_example(POSITIONS)
    holder = Holder("call", FILE, 2, POSITIONS.splitlines()[1].index("513"))
    (site,) = example.profile.facts.sites
    site = replace(
        site, arguments=(Argument("num_embeddings", 513, holder=holder), Argument("embedding_dim", 768))
    )
    facts = replace(example.profile.facts, sites=(site,))
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    assert draft.line == 5


SHARED = """\
import torch
from dataclasses import dataclass
from torch import nn

WORDS = 8193

@dataclass
class Options:
    width: int = 512
    words: int = WORDS

class Net(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.head = nn.Linear(options.width, options.words)
        #^ site module type=Linear in_features=512 out_features=8193

    def forward(self, x):
        return self.head(x)
        #^ cost device_ms=20; op aten::mm device_ms=15 shapes=[[64,512],[512,8193]] dtypes=c10::Half,c10::Half
        #^ node aten.mm.default args=[%1,%7] shape=[64,8193]
        #> tensor %7 shape=[512,8193] parameter=true

data = torch.randint(WORDS, (64, 9))
"""
CONSTANT = Holder("variable", FILE, 5, 8, "WORDS")


def shared(script: str) -> tuple[int, str]:
    text, (draft,) = drafts(CONSTANT, script)
    return draft.line, apply(text, draft.fixes[0].edits)


def test_a_constant_that_data_reads_is_padded_where_the_layers_get_it() -> None:
    line, text = shared(SHARED)
    assert line == 10
    assert "    words: int = -(-WORDS // 64) * 64\n" in text
    assert "WORDS = 8193\n" in text


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("words: int = WORDS", "sizes = {'words': WORDS}", "{'words': -(-WORDS // 64) * 64}"),
        ("words: int = WORDS", "sizes = dict(words=WORDS)", "dict(words=-(-WORDS // 64) * 64)"),
    ],
)
def test_other_names_that_a_constant_is_passed_on_under(old: str, new: str, after: str) -> None:
    assert after in shared(SHARED.replace(old, new))[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.randint(WORDS, (64, 9))", "None"),  # nothing else reads it
        ("torch.randint(WORDS, (64, 9))", "scores.view(-1, WORDS)"),  # it has to agree with the layer
        ("torch.randint(WORDS, (64, 9))", "torch.randint(9, (64, 9)) % WORDS"),
        ("width: int = 512", "width: int = 512\n    chars: int = WORDS"),  # two names
    ],
)
def test_a_constant_is_padded_itself_where_that_is_not_known_to_be_alone(old: str, new: str) -> None:
    line, text = shared(SHARED.replace(old, new))
    assert line == 5
    assert "WORDS = 8256\n" in text


#: A model of a library's, on one line of the script: which of its lines multiply is recorded below that line.
CONFIGURED = """\
import torch
from transformers import GPT2Config, GPT2LMHeadModel

data = torch.randint(0, 50257, (64, 9))
config = GPT2Config(n_embd=512)
#^ site framework construction=transformers.PreTrainedConfig type=GPT2Config "values={'vocab_size': 50257}"
model = GPT2LMHeadModel(config)
#^ site framework construction=transformers.PreTrainedModel type=GPT2LMHeadModel
for ids in data:
    loss = model(input_ids=ids, labels=ids).loss
    #^ cost step_ms=20 device_ms=20; inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=19
    #^ op aten::mm device_ms=15 shapes=[[64,512],[512,50257]] dtypes=c10::Half,c10::Half
    #^ node aten.mm.default args=[%1,%7] shape=[64,50257]
    #> tensor %1 shape=[64,512]; tensor %7 shape=[512,50257] parameter=true
"""
DEFAULT = "GPT2Config(n_embd=512)"


def in_library(
    script: str, holder: Holder | None = None, *, passed: bool = True
) -> tuple[str, tuple[str, int], str]:
    """The text with the edit ("" where there is none), the place and the message of the only finding."""
    example = read_example(script)
    facts = example.profile.facts
    argument = Argument("vocab_size", 50257, passed, holder)
    sites = [
        replace(site, arguments=(argument,))
        if passed and site.facts["construction"].endswith("Config")
        else site
        for site in facts.sites
    ]
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    facts = replace(facts, sites=tuple(sites))
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    edited = apply(example.text, draft.fixes[0].edits) if draft.fixes else ""
    return edited, draft.place, draft.message


def test_a_library_s_default_is_passed_where_its_model_is_configured() -> None:
    text, place, message = in_library(CONFIGURED, passed=False)
    assert "GPT2Config(n_embd=512, vocab_size=50304)" in text
    assert "randint(0, 50257, (64, 9))" in text
    assert place == (FILE, 5)
    assert "The size is `vocab_size` of `GPT2Config`, at its default." in message


@pytest.mark.parametrize(
    ("written", "after"),
    [
        ("GPT2Config(n_embd=512, vocab_size=50257)", "GPT2Config(n_embd=512, vocab_size=50304)"),
        ("GPT2Config()\nconfig.vocab_size = 50257", "config.vocab_size = 50304"),
        ("GPT2Config()\nconfig.update({'vocab_size': 50257})", "config.update({'vocab_size': 50304})"),
        ("GPT2Config(**dict(vocab_size=50257))", "dict(vocab_size=50304)"),
        ("GPT2Config(**{'vocab_size': 50257})", "{'vocab_size': 50304}"),
    ],
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_size_that_a_model_is_configured_with_is_changed_there(
    written: str, after: str, recorded: bool
) -> None:
    """Also in a run that has only what the model was made of."""
    script = CONFIGURED.replace(DEFAULT, written)
    if not recorded:
        script = "\n".join(line for line in script.splitlines() if "PreTrainedConfig" not in line)
    text, _, _ = in_library(script)
    assert after in text
    assert "randint(0, 50257, (64, 9))" in text


def test_a_recorded_holder_is_where_a_library_s_size_is_changed() -> None:
    script = CONFIGURED.replace(DEFAULT, "GPT2Config(vocab_size=len(words))")
    text, place, _ = in_library(script, Holder("computed", FILE, 5, len("config = GPT2Config(vocab_size=")))
    assert "GPT2Config(vocab_size=-(-len(words) // 64) * 64)" in text
    assert place == (FILE, 5)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # No configuration is known to have it: the only such number is what random data is drawn below.
        ("'vocab_size': 50257", "'vocab_size': 32000", "not a number in the source"),
        ("PreTrainedModel type", "PreTrainedModel.from_pretrained type", "a checkpoint is loaded"),
        ("for ids", "model.load_state_dict(torch.load('x'))\nfor ids", "`load_state_dict` at line 7"),
        ("for ids", "model.resize_token_embeddings(len(words))\nfor ids", "line 7 sets `vocab_size` again"),
        ("model = GPT", "config.vocab_size = len(words)\nmodel = GPT", "line 6 sets `vocab_size` again"),
    ],
)
def test_a_library_s_size_that_other_things_have_stays(old: str, new: str, reason: str) -> None:
    assert old in CONFIGURED
    text, _, message = in_library(CONFIGURED.replace(old, new), passed=False)
    assert not text
    assert reason in message


def test_a_size_that_layers_get_is_told_in_float32_too_as_it_will_matter_in_half_precision() -> None:
    script = CONFIGURED.replace("c10::Half,c10::Half", "float,float")
    text, _, message = in_library(script, passed=False)
    assert "GPT2Config(n_embd=512, vocab_size=50304)" in text
    assert "in float32" in message and "in half precision" in message
    example = read_example(script)
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, Replace)
    assert draft.change.otherwise == PadProducts(50257, "bf16", ANY, ((FILE, 8),), assumed=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'vocab_size': 50257", "'vocab_size': 32000"),  # whose size it is, is not known
        ("import torch\n", "#> flags autocast=true\nimport torch\n"),  # it is meant to stay in float32
    ],
)
def test_a_size_in_float32_that_no_layer_is_known_to_get_is_none(old: str, new: str) -> None:
    example = read_example(CONFIGURED.replace("c10::Half,c10::Half", "float,float").replace(old, new))
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    assert not list(rule.find(Context(example.profile, texts(example))))


@pytest.mark.parametrize("padded_ms", [6.0, 9.9])
def test_float32_hides_what_padding_saves(padded_ms: float) -> None:
    example = read_example(
        "#> flags allow_tf32=false\n" + CONFIGURED.replace("c10::Half,c10::Half", "float,float")
    )

    def predict(_: Profile, change: Change) -> Predicted:
        changes = change.changes if isinstance(change, Together) else (change,)
        narrowed = any(isinstance(one, MatmulRate) for one in changes)
        step_ms = (padded_ms if len(changes) > 1 else 10.0) if narrowed else 20.0
        return Predicted(step_ms, 20 / step_ms, "simulated")

    found = diagnose(example.profile, texts(example), predict=predict)
    by_rule = {one.rule: one for one in found.findings}
    assert "fp32-matmul" in by_rule
    if padded_ms > 9:
        assert [one.rule for one in found.below] == ["misaligned-matmul"]
    else:
        said = by_rule["misaligned-matmul"]
        assert "Float32 hides this now: without it a step takes 10.0 ms" in said.message
        assert said.predicted == Predicted(16.0, 1.25, "bound")


def test_the_limit_of_random_data_is_no_layer_s_size() -> None:
    script = CONFIGURED.replace("inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=19", "")
    text, _, message = in_library(script.replace("; \n", "\n"), passed=False)
    assert not text
    assert "not a number in the source" in message


GATED = """\
from torch import nn

class Gate(nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, -1)
        #^ node aten.split.Tensor args=[%1,683,-1] shape=[64,683]
        return left * right

def block(width, ratio=4):
    hidden = ratio * width // 3
    return nn.Sequential(
        nn.Linear(width, 2 * hidden),  #> site module type=Linear in_features=512 out_features=1366
        Gate(),
        nn.Linear(hidden, width),  #> site module type=Linear in_features=683 out_features=512
    )

for x in loader:
    y = net(x)
    #^ cost device_ms=20; op aten::mm device_ms=9 shapes=[[64,512],[512,1366]] dtypes=c10::Half,c10::Half
    #^ op aten::mm device_ms=6 shapes=[[64,683],[683,512]] dtypes=c10::Half,c10::Half
    #^ node aten.mm.default args=[%8,%6] shape=[64,1366]; node aten.mm.default args=[%0,%7] shape=[64,512]
    #> tensor %8 shape=[64,512]; tensor %6 shape=[512,1366] parameter=true
    #> tensor %7 shape=[683,512] parameter=true
"""


def gated(script: str) -> tuple[str, list[Draft]]:
    """What is found where ``hidden`` is 683, with its layers as the run recorded them."""
    example = read_example(script)
    lines = example.text.splitlines()
    at = {
        683: next((n, one.index("= ") + 2) for n, one in enumerate(lines, 1) if " hidden = " in one),
        1366: next((n, one.index("2 * hidden")) for n, one in enumerate(lines, 1) if "(width, 2 * h" in one),
    }
    first, second = example.profile.facts.sites
    held = {size: Holder("computed", FILE, *place) for size, place in at.items()}
    sites = (
        replace(
            first, arguments=(Argument("in_features", 512), Argument("out_features", 1366, holder=held[1366]))
        ),
        replace(
            second, arguments=(Argument("in_features", 683, holder=held[683]), Argument("out_features", 512))
        ),
    )
    rule = rule_named("misaligned-matmul")
    assert rule is not None
    facts = replace(example.profile.facts, sites=sites)
    return example.text, list(rule.find(Context(replace(example.profile, facts=facts), texts(example))))


def test_a_number_that_layers_have_multiples_of_is_rounded_up_itself() -> None:
    text, (draft,) = gated(GATED)
    assert (draft.line, draft.cost_ms) == (9, 15.0)
    assert "dimension of 1366" in draft.message and "1408 would fit" in draft.message
    after = apply(text, draft.fixes[0].edits)
    assert "    hidden = -(-(ratio * width // 3) // 64) * 64\n" in after
    assert after.replace("-(-(ratio * width // 3) // 64) * 64", "ratio * width // 3") == text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("    return nn.", "    print(hidden)\n    return nn.", "read for something else, too (line 10)"),
        ("x.chunk(2, -1)", "x.split(683, -1)", "`split` makes a tensor"),
        ("x.chunk(2, -1)", "x.chunk(2, -1); x.split(683, -1)", "`split` makes a tensor"),
        ("args=[%1,683,-1] shape=[64,683]", "args=[%1,455,-1] shape=[64,455]", "(line 5)"),
        ("#^ op aten::mm device_ms=6", "#^ tensor %9 shape=[64,683]; node aten.abs.default args=[%9] "
         "shape=[64,683]; op aten::mm device_ms=6", "data from outside"),
    ],
)  # fmt: skip
def test_a_number_that_other_things_have_too_stays(old: str, new: str, reason: str) -> None:
    assert old in GATED
    _, (draft,) = gated(GATED.replace(old, new))
    assert not draft.fixes and reason in draft.message
    assert draft.line == 9


@pytest.mark.parametrize("made", ["len(words)", "words.size(0)"])
def test_a_number_that_is_read_off_something_is_not_rounded(made: str) -> None:
    _, found = gated(GATED.replace("ratio * width // 3", made))
    assert not any(draft.fixes for draft in found)


def test_a_number_that_is_given_twice_is_none() -> None:
    _, found = gated(GATED.replace("    return nn.", "    hidden = hidden + 1\n    return nn."))
    assert not any(draft.fixes for draft in found)
