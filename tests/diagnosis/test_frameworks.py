"""Findings inside a framework stand at its own setting in the user's file, with the edit."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.diagnosis.recompute import fixes
from warpline.model.change import Fuse, RemoveSyncs, Replace, Scale, Together
from warpline.model.report import Finding
from warpline.rulekit import Context, Refused
from warpline.rulekit.framework_settings import setting_fix
from warpline.rulekit.frameworks import applies
from warpline.rules.framework_wait import FrameworkWait
from warpline.rules.hand_written_activation import HandWrittenActivation
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder
from warpline.wire.frameworks import constructions

MATMUL = "cost step_ms=90 device_ms=90; op aten::mm count=9 device_ms=80 dtypes=float,float"


def found(code: str, rule: str = "fp32-matmul") -> tuple[Finding, str]:
    example = read_example(code)
    every = diagnose(example.profile, example.profile.sources.get).findings
    finding = next(finding for finding in every if finding.rule == rule)
    # What `warpline fix` and editors do: the same edits, computed again.
    assert fixes(example.profile, finding, example.profile.sources.get) == finding.fixes
    return finding, example.text


def trainer(
    call: str = 'TrainingArguments("out")',
    parameters: str = "'bf16', 'fp16', 'tf32'",
    values: str = "{}",
    device: str = "bf16=true",
) -> str:
    return f"""\
#> flags allow_tf32=false; steps step_ms=100; device {device}
from transformers import Trainer, TrainingArguments

args = {call}
#^ site framework construction=transformers.TrainingArguments "parameters=[{parameters}]" "values={values}"
Trainer(model=model, args=args).train()  #> {MATMUL}
#^ inside file=/lib/transformers/modeling_bert.py line=9 step_ms=90
"""


def test_bfloat16_is_set_in_the_training_arguments() -> None:
    finding, text = found(trainer())
    assert finding.line == text.splitlines().index('args = TrainingArguments("out")') + 1
    assert text.splitlines()[finding.cause.line - 1].startswith("Trainer(")
    bf16, tf32 = finding.fixes
    assert 'TrainingArguments("out", bf16=True)' in apply(text, bf16.edits)
    assert 'TrainingArguments("out", tf32=True)' in apply(text, tf32.edits)
    assert "`bf16` of `TrainingArguments`" in finding.message
    assert "The edit is at" not in finding.message
    assert all(each.metric != "line of the edit" for each in finding.evidence)


def test_tf32_is_not_offered_where_products_are_in_it() -> None:
    code = trainer("TrainingArguments('out', bf16=half)").replace("allow_tf32=false", "allow_tf32=true")
    finding, text = found(code)
    assert "not in bfloat16" in finding.message
    assert not any("tf32" in apply(text, fix.edits) for fix in finding.fixes)


def test_arguments_of_a_class_that_another_package_derives_are_set_there() -> None:
    code = trainer('JointConfig("out")').replace("construction=", "type=JointConfig construction=")
    finding, text = found(code)
    assert 'JointConfig("out", bf16=True)' in apply(text, finding.fixes[0].edits)
    assert "`bf16` of `JointConfig`" in finding.message


def test_a_device_without_bfloat16_gets_float16() -> None:
    finding, text = found(trainer(device="bf16=false"))
    assert 'TrainingArguments("out", fp16=True)' in apply(text, finding.fixes[0].edits)


def test_an_argument_that_the_installed_version_lacks_is_not_offered() -> None:
    finding, text = found(trainer(parameters="'tf32'"))
    assert "bf16" not in "".join(apply(text, fix.edits) for fix in finding.fixes)
    assert 'TrainingArguments("out", tf32=True)' in apply(text, finding.fixes[0].edits)


def test_a_value_in_the_way_is_replaced_or_refused() -> None:
    finding, text = found(trainer('TrainingArguments("out", bf16=False)'))
    assert 'TrainingArguments("out", bf16=True)' in apply(text, finding.fixes[0].edits)
    finding, text = found(trainer('TrainingArguments("out", bf16=options.half)'))
    assert not any("bf16=True" in apply(text, fix.edits) for fix in finding.fixes)
    finding, text = found(trainer(values="{'fp16': True}"))
    assert not any("bf16=True" in apply(text, fix.edits) for fix in finding.fixes)


def test_a_setting_that_was_made_by_a_name_is_not_what_the_finding_is_about() -> None:
    """`bf16=ON_GPU` is on: what runs in float32 does so all the same, and no other setting helps."""
    code = trainer('TrainingArguments("out", bf16=ON_GPU)', values="{'bf16': True}")
    finding, _ = found(code)
    assert finding.line == finding.cause.line
    assert "`bf16`" not in finding.message
    assert all("TrainingArguments" not in edit.text for fix in finding.fixes for edit in fix.edits)


CLIPPED = f"""\
#> flags allow_tf32=false; steps step_ms=100
import lightning as L

optimizer = torch.optim.AdamW(model.parameters())  #> site optimizer fused=true
made = L.Trainer(gradient_clip_val=1.0)
#^ site framework construction=lightning.Trainer "parameters=['precision']"
loss = net(x)  #> {MATMUL}
"""


def test_mixed_precision_that_would_raise_is_not_offered() -> None:
    """Lightning does not clip gradients of a fused optimizer under mixed precision."""
    finding, text = found(CLIPPED)
    assert not any("precision=" in edit.text for fix in finding.fixes for edit in fix.edits)
    for other in (CLIPPED.replace("fused=true", "fused=false"), CLIPPED.replace("gradient_clip_val=1.0", "")):
        finding, text = found(other)
        assert 'precision="bf16-mixed"' in apply(text, finding.fixes[0].edits)


PER_DEVICE = "\"parameters=['per_device_train_batch_size']\" \"values={'per_device_train_batch_size': 4}\""
TWICE = f"""\
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=8)
#^ site framework construction=transformers.TrainingArguments {PER_DEVICE} with.gradient_accumulation_steps=8
Trainer(model=model, args=args).train()
#^ cost step_ms=40 device_ms=11 idle_ms=29 cpu_ms=40 launches=2500; use loader; site loader batch_size=4
"""


def test_a_larger_batch_is_accumulated_half_as_often() -> None:
    """An update sees the same samples."""
    code = TWICE.replace('\n#^ "param', ' "param')
    finding, text = found(code, "small-batch")
    (twice,) = finding.fixes
    assert twice.title == "Double the batch, accumulate half as often"
    assert "per_device_train_batch_size=8, gradient_accumulation_steps=4" in apply(text, twice.edits)
    finding, text = found(TWICE.replace("accumulation_steps=8", "accumulation_steps=1"), "small-batch")
    assert finding.fixes[0].title == "Double the batch"
    finding, _ = found(TWICE.replace("accumulation_steps=8", "accumulation_steps=3"), "small-batch")
    assert not finding.fixes
    assert "odd" in finding.message


SPECTRUM = """\
#^ tensor %8 shape=[64,64] dtype=float32; tensor %9 shape=[64,64] dtype=float32
#^ node aten.mm.default args=[%8,%9] shape=[64,64] dtype=float32
#^ node aten._fft_r2c.default args=[%0,[1],0,True] shape=[64,33] dtype=complex64
"""


def test_what_does_not_run_in_bfloat16_gets_tf32() -> None:
    finding, text = found(trainer() + SPECTRUM)
    (tf32,) = finding.fixes
    assert 'TrainingArguments("out", tf32=True)' in apply(text, tf32.edits)


def test_unpacked_arguments_are_left_alone() -> None:
    finding, text = found(trainer("TrainingArguments(**options)"))
    assert not any("bf16=True" in apply(text, fix.edits) for fix in finding.fixes)


def test_without_the_call_the_finding_stays_where_it_was() -> None:
    finding, _ = found(trainer("parse()"))
    assert finding.line == finding.cause.line


@pytest.mark.parametrize(
    ("written", "key", "parameter", "expected"),
    [
        ("L.Trainer(max_epochs=3)", "lightning.Trainer", "precision", 'precision="bf16-mixed"'),
        ("Accelerator()", "accelerate.Accelerator", "mixed_precision", 'Accelerator(mixed_precision="bf16")'),
    ],
)
def test_other_frameworks(written: str, key: str, parameter: str, expected: str) -> None:
    finding, text = found(
        f"""\
#> flags allow_tf32=false; steps step_ms=100
import lightning as L
from accelerate import Accelerator

made = {written}
#^ site framework construction={key} "parameters=['{parameter}']"
loss = net(x)  #> {MATMUL}
"""
    )
    assert finding.line == 4
    assert expected in apply(text, finding.fixes[0].edits)


def test_a_loader_of_the_trainer_s_is_changed_in_its_arguments() -> None:
    finding, text = found(
        """\
#> flags cpu_count=8; steps step_ms=100
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", dataloader_num_workers=0)
#^ site framework construction=transformers.TrainingArguments "parameters=['dataloader_num_workers']"
Trainer(model=model, args=args).train()  #> cost cpu_ms=40 idle_ms=40 loader_ms=40 step_ms=50; use loader
#^ site loader num_workers=0 in_main_ms=40; inside file=/lib/transformers/trainer.py line=9 step_ms=50
""",
        "loader-without-workers",
    )
    assert finding.line == 3
    assert "dataloader_num_workers=2" in apply(text, finding.fixes[0].edits)
    assert "No edit is offered" not in finding.message


def test_settings_of_generate_are_about_its_own_lines() -> None:
    code = """\
#> steps step_ms=20 device_busy_percent=30
out = model.generate(prompts, max_new_tokens=32)
#^ cost step_ms=20 device_ms=6 idle_ms=14 cpu_ms=20 launches=600
#^ site framework construction=transformers.GenerationMixin "parameters=['cache_implementation']"
#^ inside file=/lib/{package}/modeling_gpt2.py line=9 step_ms=20
"""
    finding, text = found(code.replace("{package}", "transformers"), "launch-bound")
    assert 'generate(prompts, max_new_tokens=32, cache_implementation="static")' in apply(
        text, finding.fixes[0].edits
    )
    finding, _ = found(code.replace("{package}", "other"), "launch-bound")
    assert finding.fixes == ()


@pytest.mark.parametrize("values", ["{}", "{'cache_implementation': 'dynamic'}"])
def test_what_the_run_saw_not_passed_is_not_in_the_unpacked_arguments(values: str) -> None:
    finding, text = found(
        """\
#> steps step_ms=20 device_busy_percent=30
out = model.generate(**batch, max_new_tokens=32)
#^ cost step_ms=20 device_ms=6 idle_ms=14 cpu_ms=20 launches=600
#^ site framework construction=transformers.GenerationMixin "parameters=['cache_implementation']" {values}
#^ inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=20
""".replace("{values}", f'"values={values}"'),
        "launch-bound",
    )
    after = [apply(text, fix.edits) for fix in finding.fixes]
    added = any('(**batch, max_new_tokens=32, cache_implementation="static")' in each for each in after)
    assert added == (values == "{}")


PARSED = """\
#> flags allow_tf32=false; steps step_ms=100
from transformers import HfArgumentParser, Trainer, TrainingArguments
{before}
parser = HfArgumentParser(TrainingArguments)
(args,) = parser.parse_args_into_dataclasses()
#^ site framework construction=transformers.TrainingArguments "parameters=['bf16']" type={type}
Trainer(model=model, args=args).train()  #> {MATMUL}
#^ inside file=/lib/transformers/modeling_bert.py line=9 step_ms=90
"""
OWN = """
class Settings(TrainingArguments):
    output_dir: str = "out"
    {field}

"""


def parsed(before: str = "", type_: str = "TrainingArguments") -> str:
    return PARSED.replace("{before}", before).replace("{type}", type_).replace("{MATMUL}", MATMUL)


def test_arguments_of_a_parser_get_a_default() -> None:
    finding, text = found(parsed())
    assert "parser.set_defaults(bf16=True)\n(args,) = parser.parse" in apply(text, finding.fixes[0].edits)
    assert text.splitlines()[finding.line - 1].startswith("(args,) =")


@pytest.mark.parametrize("entry", ["", '"bf16": False, '])
def test_arguments_of_a_dict_that_has_a_name(entry: str) -> None:
    code = parsed(f'\nOPTIONS = {{{entry}"output_dir": "out"}}\n')
    code = code.replace("parse_args_into_dataclasses()", "parse_dict(OPTIONS)")
    finding, text = found(code)
    after = apply(text, finding.fixes[0].edits)
    assert after.count('"bf16": True') == 1 and "bf16=" not in after and "False" not in after
    finding, text = found(code.replace('"out"}', '"out"} if quick else read()'))
    assert not any('"bf16": True' in apply(text, fix.edits) for fix in finding.fixes)


def test_an_argument_of_a_long_call_is_the_place() -> None:
    finding, text = found(trainer('TrainingArguments(\n    "out",\n    bf16=False,\n)'))
    assert text.splitlines()[finding.line - 1] == "    bf16=False,"
    assert "    bf16=True," in apply(text, finding.fixes[0].edits)


@pytest.mark.parametrize(
    ("field", "expected", "at"),
    [
        ("steps: int = 9", "steps: int = 9\n    bf16: bool = True\n", "class Settings"),
        ("bf16: bool = False", "bf16: bool = True\n", "    bf16: "),
        ("bf16: bool = field(default=False)", "bf16: bool = field(default=True)\n", "    bf16: "),
    ],
)
@pytest.mark.parametrize("made", ["parser", "call"])
def test_the_user_s_own_class_of_arguments_has_the_field(
    field: str, expected: str, at: str, made: str
) -> None:
    code = parsed(OWN.replace("{field}", field), "Settings")
    if made == "call":
        code = code.replace("(args,) = parser.parse_args_into_dataclasses()", "args = Settings(seed=1)")
    finding, text = found(code)
    if made == "call" and "bf16" not in field:
        expected, at = "args = Settings(seed=1, bf16=True)", "args = "
    assert expected in apply(text, finding.fixes[0].edits)
    assert text.splitlines()[finding.line - 1].startswith(at)


def test_a_field_that_the_call_passes_is_changed_there() -> None:
    code = parsed(OWN.replace("{field}", "bf16: bool = True"), "Settings")
    code = code.replace("(args,) = parser.parse_args_into_dataclasses()", "args = Settings(bf16=False)")
    finding, text = found(code)
    assert "args = Settings(bf16=True)" in apply(text, finding.fixes[0].edits)


EAGER = """\
#> steps step_ms=100
model = AutoModelForCausalLM.from_config(config{argument})
#^ site framework construction=transformers.PreTrainedModel._from_config "parameters=['attn_implementation']"
loss = model(ids).loss  #> cost step_ms=90 device_ms=90
#^ inside file=/s/transformers/llama.py line=9 function=eager_attention_forward step_ms=40
#^ inside file=/s/transformers/llama.py line=90 function=forward step_ms=50
"""


@pytest.mark.parametrize("argument", ["", ", attn_implementation='eager'"])
def test_eager_attention_is_found_by_its_function(argument: str) -> None:
    finding, text = found(EAGER.replace("{argument}", argument), "hand-written-attention")
    assert text.splitlines()[finding.line - 1].startswith("model = ")
    assert 'from_config(config, attn_implementation="sdpa")' in apply(text, finding.fixes[0].edits)
    assert finding.predicted is not None


def test_weights_of_a_model_that_only_infers_are_loaded_in_16_bits() -> None:
    code = f"""\
#> flags allow_tf32=false; steps step_ms=100; device bf16=true
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("name")
#^ site framework construction=transformers.PreTrainedModel.from_pretrained "parameters=['dtype']"
out = model(ids)  #> {MATMUL}
#^ inside file=/lib/transformers/modeling_bert.py line=9 step_ms=90
"""
    finding, text = found(code)
    assert 'from_pretrained("name", dtype=torch.bfloat16)' in apply(text, finding.fixes[0].edits)
    finding, text = found(code.replace("step_ms=90 device_ms=90", "step_ms=90 device_ms=90 backward_ms=50"))
    assert not any("dtype=" in apply(text, fix.edits) for fix in finding.fixes)


def test_a_static_cache_is_set_in_the_generation_config() -> None:
    finding, text = found(
        """\
#> steps step_ms=20 device_busy_percent=30
settings = GenerationConfig(max_new_tokens=32)
#^ site framework construction=transformers.GenerationConfig "parameters=['cache_implementation']"
out = model.generate(**inputs, generation_config=settings)
#^ cost step_ms=20 device_ms=6 idle_ms=14 cpu_ms=20 launches=600
#^ site framework construction=transformers.GenerationMixin "parameters=['cache_implementation']"
#^ inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=20
""",
        "launch-bound",
    )
    assert 'GenerationConfig(max_new_tokens=32, cache_implementation="static")' in apply(
        text, finding.fixes[0].edits
    )
    assert finding.line == 1


def test_every_framework_s_file_is_whole() -> None:
    keys = [one.key for one in constructions()]
    assert {"transformers.TrainingArguments", "lightning.Trainer", "accelerate.Accelerator"} <= set(keys)
    assert len(keys) == len(set(keys))
    for one in constructions():
        for setting in one.settings:
            assert (
                setting.arguments
                or setting.undo
                or setting.instead
                or setting.renamed
                or setting.classes
                or (setting.lines and setting.call)
            )
            assert set(setting.where_known) < set(setting.arguments) | {""}
            assert setting.needs in ("", "bf16", "fp16", "graphs")


CONFIGURED = """\
#> steps step_ms=20
config = GPT2Config(n_layer=2{given})
#^ site framework construction=transformers.PreTrainedConfig "parameters=['attn_implementation']" {kind}
model = GPT2LMHeadModel(config)
out = model(prompt)
#^ cost step_ms=20 device_ms=20
#^ inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=18 function=eager_attention_forward
"""


@pytest.mark.parametrize(("given", "offered"), [(', attn_implementation="eager"', True), ("", False)])
def test_a_configuration_that_does_not_ask_for_eager_attention_is_left(given: str, offered: bool) -> None:
    """The model may have no other attention than the one that it has by itself."""
    example = read_example(CONFIGURED.replace("{given}", given).replace("{kind}", "type=GPT2Config"))
    argument = Argument("attn_implementation", "eager", holder=Holder("call", FILE, 1, 52))
    sites = tuple(
        replace(one, arguments=(argument,) if offered else ()) for one in example.profile.facts.sites
    )
    profile = replace(example.profile, facts=replace(example.profile.facts, sites=sites))
    context = Context(profile, texts(example))
    (one,) = (one for one in constructions() if one.key == "transformers.PreTrainedConfig")
    (setting,) = (each for each in one.settings if each.rule == "hand-written-attention")
    assert applies(context, sites[0], setting) == offered
    if offered:
        fix = setting_fix(context, sites[0], one, setting)
        assert 'attn_implementation="sdpa"' in apply(example.text, fix.edits)


READ = """\
#> flags anomaly_mode=true; steps step_ms=40
import lightning as L

made = L.Trainer(**read("run.yaml"))
#^ site framework construction=lightning.Trainer "parameters=['detect_anomaly']"
made.fit(net)  #> cost step_ms=40 device_ms=20 cpu_ms=36 traceback_ms=20 check_ms=7
"""


@pytest.mark.parametrize("kind", ["file", "environment", "command line"])
def test_a_value_that_no_edit_changes_is_found_where_it_is_written(kind: str) -> None:
    example = read_example(READ)
    given = Argument("detect_anomaly", True, holder=Holder(kind, "/project/run.yaml", 16))
    sites = tuple(replace(site, arguments=(given,)) for site in example.profile.facts.sites)
    profile = replace(example.profile, facts=replace(example.profile.facts, sites=sites))
    findings = diagnose(profile, profile.sources.get).findings
    (one,) = (finding for finding in findings if finding.rule == "anomaly-detection-on")
    assert one.place == ("/project/run.yaml", 16)
    assert not one.fixes


GELU = """\
#> steps step_ms=100
config = {name}(n_layer=2{given})
#^ site framework construction=transformers.PreTrainedConfig type={name} "parameters=['{argument}']" {values}
model = GPT2LMHeadModel(config)
Trainer(model=model).train()
#^ cost step_ms=100 device_ms=100
#^ inside file=/lib/transformers/activations.py line=66 step_ms={spent} function={function}
#^ inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=60 function=GPT2Block.forward
#^ op aten::tanh count=12 device_ms=2; op aten::tanh count=12 phase=recompute device_ms=2
#^ op aten::mul phase=backward count=12 device_ms=3
"""


def gelu(
    argument: str = "activation_function",
    name: str = "GPT2Config",
    given: str = "",
    values: str = "",
    function: str = "NewGELUActivation.forward",
    spent: int = 30,
) -> str:
    named = {"argument": argument, "name": name, "given": given, "values": values, "function": function}
    return GELU.format(**named, spent=spent)


@pytest.mark.parametrize("argument", ["activation_function", "hidden_act", "dense_act_fn"])
@pytest.mark.parametrize("known", [True, False])
def test_a_gelu_of_several_operators_is_chosen_in_the_configuration(argument: str, known: bool) -> None:
    values = f"\"values={{'{argument}': 'gelu_new'}}\"" if known else ""
    finding, text = found(gelu(argument, values=values), "hand-written-activation")
    (fix,) = finding.fixes
    assert f'GPT2Config(n_layer=2, {argument}="gelu_pytorch_tanh")' in apply(text, fix.edits)
    assert (finding.line, finding.cause.line) == (1, 3)
    assert f"`{argument}` of `GPT2Config`" in finding.message
    assert "30.0 ms a step (30 %)" in finding.message


def test_what_a_fused_gelu_takes() -> None:
    example = read_example(gelu())
    (draft,) = HandWrittenActivation().find(Context(example.profile, texts(example)))
    assert draft.saving_ms == pytest.approx(30 - 2 - 3 - 2)  # forward, backward, and forward again


def test_one_that_is_written_there_is_changed() -> None:
    code = gelu("hidden_act", given=", hidden_act='gelu_python'", function="GELUActivation._gelu_python")
    example = found(
        code.replace("type=", "\"values={'hidden_act': 'gelu_python'}\" type="), "hand-written-activation"
    )
    assert 'hidden_act="gelu"' in apply(example[1], example[0].fixes[0].edits)


@pytest.mark.parametrize(
    "code",
    [
        gelu(values="\"values={'activation_function': 'relu'}\""),
        gelu("hidden_size"),
        gelu().replace("PreTrainedConfig", "TrainingArguments"),
    ],
)
def test_where_the_configuration_does_not_choose_it_it_stays(code: str) -> None:
    finding, _ = found(code, "hand-written-activation")
    assert (finding.line, finding.fixes) == (3, ())


def test_a_fused_one_is_left() -> None:
    example = read_example(gelu(function="GELUTanh.forward"))
    every = diagnose(example.profile, example.profile.sources.get).findings
    assert "hand-written-activation" not in {one.rule for one in every}


def test_every_setting_of_a_trainer_can_be_written() -> None:
    (one,) = (one for one in constructions() if one.key == "transformers.TrainingArguments")
    names = sorted(one.arguments)
    example = read_example(trainer(parameters=", ".join(map(repr, names)), values="{NAME: 4}").replace(
        "NAME", "'per_device_train_batch_size'"
    ))  # fmt: skip
    context = Context(example.profile, texts(example))
    (site,) = context.sites("framework")
    written = set()
    for setting in one.settings:
        with contextlib.suppress(Refused):
            fix = setting_fix(context, site, one, setting, workers=2)
            written |= {edit.text.lstrip(", ") for edit in fix.edits}
    assert 'accelerator_config={"non_blocking": True}' in written
    assert {"bf16=True", "per_device_train_batch_size=8", "logging_nan_inf_filter=False"} <= written
    assert "dataloader_num_workers=2, dataloader_persistent_workers=True" in written


@pytest.mark.parametrize(("rest", "named"), [("", True), ('.to("cuda")', True), (".unet", False)])
def test_lines_below_are_written_where_the_name_holds_the_pipeline(rest: str, named: bool) -> None:
    code = f"""\
#> steps step_ms=20 device_busy_percent=30
pipe = DiffusionPipeline.from_pretrained("name"){rest}
#^ site framework construction=diffusers.DiffusionPipeline.from_pretrained {{site}}
out = pipe(prompt)
#^ cost step_ms=20 device_ms=6 idle_ms=14 cpu_ms=20 launches=600
#^ inside file=/lib/diffusers/unet.py line=9 step_ms=20
"""
    code = code.replace("{site}", "\"parts={'unet': ['compile_repeated_blocks']}\"")
    finding, text = found(code, "launch-bound")
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert any("pipe.unet.compile_repeated_blocks()" in each for each in after) == named


@pytest.mark.parametrize("callback", ["TQDMProgressBar()", "ModelCheckpoint()"])
def test_a_progress_bar_of_the_user_s_own_stays(callback: str) -> None:
    code = f"""\
#> steps step_ms=100
trainer = Trainer(callbacks=[{callback}])
#^ site framework construction=pytorch_lightning.Trainer "parameters=['enable_progress_bar']"
trainer.fit(model)  #> cost step_ms=90 device_ms=40 idle_ms=50 cpu_ms=80 sync_ms=60
#^ inside file=/lib/pytorch_lightning/utilities/apply_func.py line=9 sync_ms=55 text='value.item()'
"""
    finding, text = found(code, "framework-wait")
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert any("enable_progress_bar=False" in each for each in after) == ("Progress" not in callback)


@pytest.mark.parametrize("more", [0.0, 60.0])
def test_the_line_that_waits_goes_with_its_wait(more: float) -> None:
    """It copies weights to the CPU and works on them there. The user's line also waits for, and computes,
    something else: ``more``."""
    text = "text=.to(device=self.device)"
    code = f"""\
#> steps step_ms=190; totals idle_ms=130
average = ModelEmaV3(model, device="cpu")
#^ site framework construction=timm.ModelEmaV3 "parameters=['device']" with.device=cpu
train(model, average)
#^ cost step_ms={130 + more} device_ms={10 + more} idle_ms=120 cpu_ms={130 + more} sync_ms=20
#^ inside file=/lib/timm/utils/model_ema.py line=9 step_ms=126 device_ms=10 idle_ms=116 sync_ms=20 {text}
"""
    example = read_example(code)
    (draft,) = FrameworkWait().find(Context(example.profile, texts(example)))
    (place,) = (cost.place for cost in example.profile.lines)
    scale = Scale((place,), device=1 - 10 / (10 + more), host=max(0.0, 1 - 116 / (110 + more)), apart=True)
    assert draft.change == Together((RemoveSyncs((place,)), scale))
    finding, _ = found(code, "framework-wait")
    assert "126 ms in all" in finding.message
    assert {one.value for one in finding.evidence if one.metric == "at most lost"} == {100 * 126 / 190}


CHECKPOINTED = """\
#> device memory_bytes=80000000000; memory peak_bytes=9000000000 free_bytes=60000000000; steps step_ms=100
{before}
#^ site framework construction=transformers.PreTrainedModel.gradient_checkpointing_enable
loss = model(ids).loss  #> cost step_ms=90 device_ms=90 recompute_ms=20
#^ op aten::mm phase=recompute device_ms=9 count=24 shapes=[[8192,1024],[1024,4096]] dtypes=float,float
#^ inside file=/s/transformers/llama.py line=9 function=forward step_ms=90
"""


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        ("model.gradient_checkpointing_enable()", 1, "loss = "),
        (
            "save = True\\nif save:\\n    model.gradient_checkpointing_enable()",
            1,
            "save = False\\nif save:\\n    model",
        ),
        (
            "train = True\\nif train:\\n    model.train()\\n    model.gradient_checkpointing_enable()",
            4,
            "train = True\\nif train:\\n    model.train()\\nloss",
        ),
        (  # What else the flag decides is for the checkpoints, too.
            "class Config:\\n    save: bool = True\\nif Config.save:\\n    model.config.use_cache = False\\n"
            "    model.enable_input_require_grads()\\n    model.gradient_checkpointing_enable()",
            2,
            "class Config:\\n    save: bool = False\\nif Config.save:\\n    model.config.use_cache",
        ),
        ("model.gradient_checkpointing_enable() or print()", 1, ""),
    ],
)
def test_the_call_that_turns_checkpointing_on_goes(before: str, line: int, after: str) -> None:
    finding, text = found(
        CHECKPOINTED.replace("{before}", before.replace("\\n", "\n")), "needless-checkpointing"
    )
    if not after:
        assert not finding.fixes and "by hand" in finding.message
        return
    assert finding.line == line
    assert apply(text, finding.fixes[0].edits).startswith(after.replace("\\n", "\n"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('config._attn_implementation = "eager"', 'config._attn_implementation = "sdpa"'),
        (
            'own = {"attn_implementation": "eager"}\nconfig = LlamaConfig(**own)',
            'own = {"attn_implementation": "sdpa"}',
        ),
        ('config = LlamaConfig(attn_implementation="eager")', 'LlamaConfig(attn_implementation="sdpa")'),
        # What is not seen to reach the model that the steps use stays.
        ('SETTINGS = {"attn_implementation": "eager"}', ""),
        ('teacher._attn_implementation = "eager"', ""),
        (
            'config._attn_implementation = "eager"\nbig = B(config)\nconfig = load()\nconfig = more(config)',
            "",
        ),
        ('class Options:\n    attn_implementation: str = "eager"', ""),
        ('def teacher(config):\n    config._attn_implementation = "eager"\n    return Big(config)', ""),
        ('first._attn_implementation = "eager"\nsecond._attn_implementation = "eager"', ""),
    ],
)
def test_a_model_made_from_its_configuration_is_changed_there(written: str, expected: str) -> None:
    finding, text = found(
        f"""\
#> steps step_ms=100
{written}
model = LlamaForCausalLM(config)
#^ site framework construction=transformers.PreTrainedModel type=LlamaForCausalLM "parameters=['config']"
loss = model(ids).loss  #> cost step_ms=90 device_ms=90
#^ inside file=/s/transformers/llama.py line=9 function=eager_attention_forward step_ms=90
""",
        "hand-written-attention",
    )
    if expected:
        assert finding.line == 1
        assert expected in apply(text, finding.fixes[0].edits)
    else:
        assert not finding.fixes


def test_of_several_models_none_is_changed_where_its_configuration_is_written() -> None:
    made = "#^ site framework construction=transformers.PreTrainedModel \"parameters=['config']\""
    finding, _ = found(
        f"""\
#> steps step_ms=100
config._attn_implementation = "eager"
teacher = LlamaForCausalLM(config)
{made}
student = LlamaForCausalLM(small)
{made}
loss = student(ids).loss  #> cost step_ms=90 device_ms=90
#^ inside file=/s/transformers/llama.py line=9 function=eager_attention_forward step_ms=90
""",
        "hand-written-attention",
    )
    assert not finding.fixes


def test_attention_in_slices_is_found_at_the_call_that_asks_for_it() -> None:
    finding, text = found(
        """\
#> steps step_ms=100
pipe.enable_attention_slicing()
#^ site framework construction=diffusers.DiffusionPipeline.enable_attention_slicing
pictures = pipe(prompt)  #> cost step_ms=90 device_ms=90
#^ inside file=/s/diffusers/p.py line=9 function=Attention.forward step_ms=90
#^ op aten::baddbmm count=8 device_ms=20; op aten::_softmax count=8 device_ms=30; op aten::mm device_ms=9
""",
        "hand-written-attention",
    )
    assert finding.line == 1
    assert "slicing" not in apply(text, finding.fixes[0].edits)


@pytest.mark.parametrize("inside", [True, False])
def test_batches_that_a_trainer_copies_are_pinned_in_their_loader(inside: bool) -> None:
    below = "#^ inside file=/lib/lightning/apply_func.py line=9 step_ms=50"
    finding, text = found(
        f"""\
#> steps step_ms=100
loader = DataLoader(data)  #> site loader num_workers=4 pin_memory=false
trainer.fit(net, loader)  #> cost step_ms=50 idle_ms=30 sync_ms=20; use loader
#^ kernel "Memcpy HtoD (Pageable -> Device)" kind=copy device_ms=20
{below if inside else ""}
""",
        "pageable-host-copy",
    )
    if inside:
        assert "DataLoader(data, pin_memory=True)" in apply(text, finding.fixes[0].edits)
        assert finding.fixes[0].title == "Pin the loader's batches"
    else:
        assert not finding.fixes


@pytest.mark.parametrize(
    ("before", "passed", "expected"),
    [
        ("model.generation_config.use_cache = False", "", "model.generation_config.use_cache = True"),
        (
            "model.config.use_cache = model.generation_config.use_cache = False",
            "",
            "model.config.use_cache = model.generation_config.use_cache = True",
        ),
        ("model.generation_config.use_cache = False", ", use_cache=False", "generate(ids, use_cache=True)"),
        ("model.config.use_cache = False", "", "generate(ids, use_cache=True)"),
    ],
)
def test_the_cache_is_turned_on_where_it_is_turned_off(before: str, passed: str, expected: str) -> None:
    finding, text = without_cache(before, passed)
    assert expected in apply(text, finding.fixes[0].edits)
    assert finding.line == (2 if "generate" in expected else 1)
    assert len(finding.fixes) == 1


@pytest.mark.parametrize(("kind", "fixes"), [("cuda", 2), ("cpu", 1)])
def test_the_second_fix_is_a_cache_of_one_size(kind: str, fixes: int) -> None:
    finding, text = without_cache("", ", use_cache=False", "'use_cache', 'cache_implementation'", kind)
    made = [apply(text, fix.edits) for fix in finding.fixes]
    assert ["static" in one for one in made] == [False, True][:fixes]
    assert 'generate(ids, use_cache=True, cache_implementation="static")' in made[-1] or fixes == 1


def without_cache(
    before: str, passed: str, parameters: str = "'use_cache'", kind: str = "cuda"
) -> tuple[Finding, str]:
    lengths = "".join(
        f"#^ op aten::scaled_dot_product_attention shapes=[{f'[8,8,{length},64],' * 2}] ".replace(",]", "]")
        + "count=0.2 device_ms=30\n"
        for length in (400, 401, 402)
    )
    code = f"""\
#> steps step_ms=100; device kind={kind}
{before}
out = model.generate(ids{passed})  #> cost step_ms=90 device_ms=90
#^ site framework construction=transformers.GenerationMixin "parameters=[{parameters}]"
#^ inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=90
{lengths}"""
    return found(code, "generation-without-cache")


@pytest.mark.parametrize("method", ["enable_model_cpu_offload", "enable_sequential_cpu_offload"])
@pytest.mark.parametrize("free", [60_000_000_000, 1_000_000_000])
def test_a_pipeline_that_fits_stays_on_the_device(free: int, method: str) -> None:
    weights = "weights_bytes=5000000000"
    finding, text = found(
        f"""\
#> steps step_ms=100; memory free_bytes={free}
pipe.{method}()
#^ site framework construction=diffusers.DiffusionPipeline.{method} {weights}
pictures = pipe(prompt)  #> cost step_ms=90 device_ms=80 copy_ms=60 sync_ms=60
#^ inside file=/s/accelerate/hooks.py line=9 function=pre_forward step_ms=90
#^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=60 bytes=4000000000
""",
        "pageable-host-copy",
    )
    assert finding.line == 1
    if free < 5_000_000_000:
        assert not finding.fixes and "room" in finding.message
        return
    assert 'pipe.to("cuda")\n' in apply(text, finding.fixes[0].edits)
    assert finding.predicted is not None and 2 < finding.predicted.speedup < 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Model, trainer_defaults={'max_epochs': 9}", "trainer_defaults={'max_epochs': 9, \"precision\": "),
        ("Model", 'LightningCLI(Model, trainer_defaults={"precision": '),
        ("Model, trainer_defaults=DEFAULTS", ""),
    ],
)
def test_a_trainer_that_lightning_s_command_line_makes(given: str, expected: str) -> None:
    finding, text = found(
        f"""\
#> flags allow_tf32=false; steps step_ms=100; device bf16=true
LightningCLI({given})
#^ site framework construction=lightning.Trainer "parameters=['precision']"
loss = model(x)  #> {MATMUL}
"""
    )
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert any(expected + '"bf16-mixed"}' in each for each in after) == bool(expected)
    assert finding.line == 1 or not expected


def test_a_parser_of_trl_s_gets_a_default() -> None:
    finding, text = found(parsed().replace("parse_args_into_dataclasses", "parse_args_and_config"))
    assert "parser.set_defaults(bf16=True)" in apply(text, finding.fixes[0].edits)


def test_a_wait_for_offloaded_weights_is_at_the_call_that_offloads() -> None:
    finding, text = found(
        """\
#> steps step_ms=100; memory free_bytes=60000000000
pipe.enable_sequential_cpu_offload()
#^ site framework construction=diffusers.DiffusionPipeline.enable_sequential_cpu_offload weights_bytes=5000000
pictures = pipe(prompt)  #> cost step_ms=90 device_ms=30 idle_ms=60 cpu_ms=80 sync_ms=50
#^ inside file=/lib/accelerate/hooks.py line=9 sync_ms=45 text='module._hf_hook.pre_forward(module)'
""",
        "framework-wait",
    )
    assert finding.line == 1 and "`enable_sequential_cpu_offload` asks for it" in finding.message
    assert 'pipe.to("cuda")\n' in apply(text, finding.fixes[0].edits)


AVERAGE = """\
#> flags allow_tf32=false; steps step_ms=100
from diffusers.training_utils import EMAModel

average = EMAModel(model.parameters(), foreach=False)
#^ site framework construction=diffusers.EMAModel "parameters=['foreach']" "values={'foreach': False}"
average.step(model.parameters())
#^ cost step_ms=40 device_ms=10; op aten::sub_ count=686 device_ms=10
#^ inside file=/lib/diffusers/training_utils.py line=811 step_ms=36 function=EMAModel.step
"""


def test_the_average_s_loop_is_found_at_its_setting() -> None:
    finding, text = found(AVERAGE, "parameter-loop")
    assert "EMAModel(" in text.splitlines()[finding.line - 1]
    assert "foreach=True" in apply(text, finding.fixes[0].edits)


def test_an_option_that_is_off_and_has_no_default_gets_one() -> None:
    option = 'parser.add_argument("--foreach_ema", action="store_true", help="quick")'
    above = f"{option}\na = parser.parse_args()\n\naverage = "
    code = AVERAGE.replace("average = ", above).replace("foreach=False", "foreach=a.ema")
    example = read_example(code)
    place = (FILE, example.text.splitlines().index(option) + 1)
    given = Argument("foreach", False, passed=True, holder=Holder("option", *place))
    sites = [replace(site, arguments=(given,)) for site in example.profile.facts.sites]
    profile = replace(example.profile, facts=replace(example.profile.facts, sites=tuple(sites)))
    every = diagnose(profile, profile.sources.get).findings
    finding = next(finding for finding in every if finding.rule == "parameter-loop")
    assert finding.place == place
    assert option.replace(")", ", default=True)") in apply(example.text, finding.fixes[0].edits)


SWITCHED_OFF = """\
#> steps step_ms=50
import timm
from timm.layers import set_fused_attn

set_fused_attn({on})
#^ site framework construction=timm.set_fused_attn "parameters=['enable']" "values={{'enable': {on}}}"
model = timm.create_model("vit_small_patch16_224")
for x in batches:
    y = model(x)
    #^ cost device_ms=48; inside file=/lib/{package}/layers/attention.py line=9 step_ms=30
    #^ op aten::bmm device_ms=10 shapes=[[768,197,64],[768,64,197]] dtypes=c10::BFloat16,c10::BFloat16
    #^ op aten::_softmax device_ms=4 shapes=[[128,6,197,197]] dtypes=float
    #^ op aten::bmm device_ms=6 shapes=[[768,197,197],[768,197,64]] dtypes=c10::BFloat16,c10::BFloat16
    #^ op aten::add device_ms=5 shapes=[[128,197,384],[128,197,384]] dtypes=float,float
    #^ node aten.bmm.default args=[%9,%10] shape=[768,197,197] via=library
    #^ node aten.view.default args=[%0,[128,6,197,197]] shape=[128,6,197,197] via=library
    #^ node aten._softmax.default args=[%1,-1,False] shape=[128,6,197,197] via=library
    #^ node aten.view.default args=[%2,[768,197,197]] shape=[768,197,197] via=library
    #^ node aten.bmm.default args=[%3,%11] shape=[768,197,64] via=library
    #^ tensor %9 shape=[768,197,64]; tensor %10 shape=[768,64,197]; tensor %11 shape=[768,197,64]
"""


def test_a_switch_without_which_a_library_s_attention_is_fused() -> None:
    finding, text = found(SWITCHED_OFF.format(on=False, package="timm"), "hand-written-attention")
    assert finding.line == text.splitlines().index("set_fused_attn(False)") + 1
    assert text.splitlines()[finding.cause.line - 1].strip() == "y = model(x)"
    assert "set_fused_attn(False)" not in apply(text, finding.fixes[0].edits)
    # The sum of the branches does not touch the scores.
    assert {one.value for one in finding.evidence if one.unit == "ms"} == {20.0}


@pytest.mark.parametrize("recorded", [True, False])
def test_attention_of_a_function_is_tried_where_the_step_shows_its_operators(recorded: bool) -> None:
    """A fused kernel takes at least as long as the longest of them, and replaces the function alone."""
    lines = SWITCHED_OFF.partition("y = model(x)\n")[2].splitlines()
    shown = [line.strip() for line in lines if recorded or not line.strip().startswith("#^ node")]
    code = EAGER.replace("{argument}", "").splitlines() + shown[1:]
    example = read_example("\n".join(code))
    (draft,) = HandWrittenAttention().find(Context(example.profile, texts(example)))
    (cost,) = example.profile.lines
    share = 40 / cost.step_ms
    if recorded:
        fused = Fuse((cost.place,), keep=10 / 20, shares=(share,))
        assert draft.change == Replace("attention", (cost.place,), fused, (), (share,))
    else:
        assert draft.change == Fuse((cost.place,), shares=(share,))


OF_MODULES = (
    SWITCHED_OFF.replace("import timm\nfrom timm.layers import set_fused_attn\n", "{imports}\n{before}")
    .replace("set_fused_attn({on})\n", "{call}\n", 1)
    .replace("timm.set_fused_attn", "diffusers.Attention.set_processor")
    .replace("'enable'", "'processor'")
    .replace("{on}", "'{given}'")
    .replace("timm.create_model(", "UNet2DModel(")
)
PROCESSORS = "from diffusers.models.attention_processor import AttnProcessor"
IN_A_LOOP = """\
def processed(blocks, by):
    for one in blocks:
        {set}

slow = AttnProcessor()
processed(attentions, slow)
"""


@pytest.mark.parametrize(
    ("imports", "call", "line", "fixed"),
    [
        (
            PROCESSORS,
            "block.set_processor(AttnProcessor())",
            "block.",
            "block.set_processor(AttnProcessor2_0())",
        ),
        (
            "from diffusers.models import attention_processor as parts",
            "block.set_processor(parts.AttnProcessor())",
            "block.",
            "block.set_processor(parts.AttnProcessor2_0())",
        ),
        (PROCESSORS, IN_A_LOOP, "slow = ", "slow = AttnProcessor2_0()"),
        (PROCESSORS, "block.set_processor(chosen())", "block.", ""),
    ],
)
def test_a_module_s_processor_is_another_where_it_is_made(
    imports: str, call: str, line: str, fixed: str
) -> None:
    code, before = OF_MODULES, ""
    if "{set}" in call:
        site = code.splitlines()[code.splitlines().index("{call}") + 1]
        before, call = call.replace("{set}", "one.set_processor(by)\n        " + site), "pass"
        code = code.replace(site + "\n", "", 1)
    code = code.replace("{imports}", imports).replace("{before}", before).replace("{call}", call)
    finding, text = found(code.format(given="AttnProcessor", package="diffusers"), "hand-written-attention")
    assert text.splitlines()[finding.line - 1].startswith(line)
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert len(after) == bool(fixed)
    assert all(fixed in one and ("import AttnProcessor2_0" in one or "parts." in one) for one in after)


def test_a_module_s_processor_that_uses_fused_attention() -> None:
    code = (
        OF_MODULES.replace("{imports}", PROCESSORS).replace("{before}", "").replace("{call}", "keep(block)")
    )
    example = read_example(code.format(given="AttnProcessor2_0", package="diffusers"))
    rules = {one.rule for one in diagnose(example.profile, example.profile.sources.get).findings}
    assert "hand-written-attention" not in rules


def test_products_that_a_fused_attention_has_not_need_no_other_size() -> None:
    example = read_example(SWITCHED_OFF.format(on=False, package="timm"))
    rules = {one.rule for one in diagnose(example.profile, example.profile.sources.get).findings}
    assert "misaligned-matmul" not in rules


@pytest.mark.parametrize(("on", "package"), [(True, "timm"), (False, "clip")])
def test_a_switch_that_is_on_or_of_another_library(on: bool, package: str) -> None:
    example = read_example(SWITCHED_OFF.format(on=on, package=package))
    rules = {one.rule for one in diagnose(example.profile, example.profile.sources.get).findings}
    assert "hand-written-attention" not in rules
    assert "misaligned-matmul" in rules


ADAPTED = """\
#> flags allow_tf32=false; steps step_ms=100
from transformers import AutoModelForCausalLM
base = AutoModelForCausalLM.from_pretrained("llama")
#^ site framework construction=transformers.PreTrainedModel.from_pretrained "parameters=['dtype']"
model = get_peft_model(base, LoraConfig())
optimizer = AdamW(model.parameters())  #> site optimizer elements={trained}
loss = model(ids).loss  #> {cost}; cost step_ms=90 device_ms=90 backward_ms=60
#^ inside file=/lib/transformers/llama.py line=9 step_ms=60
#^ inside file=/lib/{package}/lora.py line=9 step_ms=30
#^ node aten.mm.default args=[%8,%9] shape=[64,64] via=library
#^ tensor %8 shape=[64,64]; tensor %9 shape=[64,64] parameter=true
optimizer.step()  #> use optimizer
"""


@pytest.mark.parametrize(
    ("trained", "package", "offered"), [(64, "peft", True), (4096, "peft", False), (64, "own", False)]
)
def test_weights_beside_adapters_are_loaded_in_bfloat16(trained: int, package: str, offered: bool) -> None:
    finding, text = found(ADAPTED.format(trained=trained, package=package, cost=MATMUL))
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert any('from_pretrained("llama", dtype=torch.bfloat16)' in each for each in after) == offered
    assert (finding.line == 2) == offered


@pytest.mark.parametrize(
    ("call", "device", "after"),
    [
        ("ModelEmaV2(net, device='cpu')", "cpu", "utils.ModelEmaV3(net, device=None)"),
        ("ModelEmaV2(net, 0.99)", "", "utils.ModelEmaV3(net, 0.99)"),
        ("ModelEmaV2(net, 0.99, 'cpu')", "cpu", ""),  # the newer class takes another argument there
    ],
)
def test_an_average_of_timm_s_is_of_the_newer_class(call: str, device: str, after: str) -> None:
    given = f"with.device={device}" if device else ""
    code = f"""\
#> steps step_ms=200; totals idle_ms=90
from timm import utils

average = utils.{call}
#^ site framework construction=timm.ModelEmaV2 "parameters=['device','ModelEmaV3']" {given}
for x, y in loader:
    train(net, x, y)  #> cost step_ms=100 device_ms=90
    average.update(net)
    #^ cost step_ms=80 device_ms=4 idle_ms=76 cpu_ms=70 sync_ms=20 launches=900
    #^ op aten::mul count=400 cpu_ms=9; op aten::add count=200 cpu_ms=9; op aten::copy_ count=200 cpu_ms=9
    #^ inside file=/s/timm/utils/model_ema.py line=9 function=ModelEmaV2._update step_ms=78 sync_ms=20 {{}}
"""
    finding, text = found(code.replace("{}", "text=model_v.to(device=self.device)"), "parameter-loop")
    assert finding.line == 3
    assert [after in apply(text, fix.edits) for fix in finding.fixes] == [True] * bool(after)
    example = read_example(code.replace("{}", "text=model_v.to(device=self.device)"))
    rules = [one.rule for one in diagnose(example.profile, texts(example)).findings]
    assert "framework-wait" not in rules
    assert ("sync-in-step" in rules) == (device == "")  # no setting of timm's makes it wait


LATER = trainer(values="{'bf16': True, 'fp16': False}").replace(
    "bf16': True, 'fp16': False}\"", "bf16': True, 'fp16': False}\" \"changed={'bf16': False}\""
)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("args.bf16 = False", "args.bf16 = True"),
        ("args.bf16 = False\nother.bf16 = False", ""),
        ("args = args.set_training(bf16=False)", ""),
    ],
)
def test_a_setting_that_is_set_as_an_attribute_is_changed_there(setting: str, expected: str) -> None:
    """What the call passes has no effect then."""
    finding, text = found(LATER.replace("Trainer(model", f"{setting}\nTrainer(model"))
    after = [apply(text, fix.edits) for fix in finding.fixes]
    assert not any('"out", bf16' in each for each in after)
    assert [each for each in after if "bf16 = True" in each] == ([after[0]] if expected else [])
    if expected:
        assert expected in after[0]
        assert text.splitlines()[finding.line - 1] == setting


@pytest.mark.parametrize("made", ['partial(TrainingArguments, "out")', "TrainingArguments"])
def test_a_call_by_another_name(made: str) -> None:
    code = trainer("make(seed=1)").replace("\nargs", f"\nfrom functools import partial\nmake = {made}\nargs")
    finding, text = found(code)
    assert "args = make(seed=1, bf16=True)" in apply(text, finding.fixes[0].edits)
    assert text.splitlines()[finding.line - 1] == "args = make(seed=1)"
    assert found(code.replace(f"make = {made}", "make = other"))[0].line != finding.line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('["--bf16", "False", "--output_dir", "out"]', '["--bf16", "True", "--output_dir", "out"]'),
        ('["--bf16=False"]', '["--bf16=True"]'),
        ('["--output_dir", "out"]', "parser.set_defaults(bf16=True)\n"),
        ('["--no_bf16"]', ""),
        ("sys.argv[1:]", "parser.set_defaults(bf16=True)\n"),
        ('sys.argv[1:] or ["--output_dir", "out"]', "parser.set_defaults(bf16=True)\n"),
        ('sys.argv[1:] or ["--bf16=False"]', 'sys.argv[1:] or ["--bf16=True"]'),
        ("WORDS + sys.argv[1:]", ""),
        ('["--output_dir", folder, *more]', ""),
    ],
)
def test_options_that_the_script_gives_the_parser_are_changed_there(words: str, expected: str) -> None:
    finding, text = found(parsed().replace("into_dataclasses()", f"into_dataclasses({words})"))
    made = [fix for fix in finding.fixes if fix.title == "Train in bfloat16"]
    assert bool(made) == bool(expected)
    assert not made or expected in apply(text, made[0].edits)


EMPTIES = """\
#> totals idle_ms=10
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", torch_empty_cache_steps=1)
#^ site framework construction=transformers.TrainingArguments "parameters=['torch_empty_cache_steps']"
#^ also "values={'torch_empty_cache_steps': 1}"
Trainer(model=model, args=args).train()  #> cost step_ms=60 device_ms=45 idle_ms=10 cpu_ms=55 sync_ms=2
#^ inside file=/lib/transformers/trainer.py line=9 step_ms=52 device_ms=45 idle_ms=2
#^ inside file=/lib/accelerate/memory.py line=60 step_ms=8 sync_ms=2 idle_ms=8 text=torch.cuda.empty_cache()
"""


def test_a_cache_that_the_framework_empties_is_left_alone_by_its_setting() -> None:
    finding, text = found(EMPTIES, "cache-emptied-in-step")
    assert finding.line == finding.fixes[0].edits[0].start[0] == 3
    assert 'TrainingArguments("out", torch_empty_cache_steps=None)' in apply(text, finding.fixes[0].edits)
    assert finding.evidence[0].value == pytest.approx(8)
    assert finding.predicted is not None
    assert 52 <= finding.predicted.step_ms < 60


def test_a_cache_that_takes_little_is_no_finding() -> None:
    example = read_example(EMPTIES.replace("step_ms=8 sync_ms=2 idle_ms=8", "step_ms=0.2 idle_ms=0.2"))
    every = diagnose(example.profile, example.profile.sources.get).findings
    assert not [one for one in every if one.rule == "cache-emptied-in-step"]
