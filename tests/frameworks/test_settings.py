"""Each setting, made in a script with the real framework: the running script changes, not only its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.frameworks.bench import Bench, profiled
from warpline.rulekit import Context, Refused
from warpline.rulekit.configured import Configured, configured, padding
from warpline.rulekit.library_attention import asked_for
from warpline.text.edits import apply


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """``bench(name)``: each script is profiled once."""
    known: dict[str, Bench] = {}

    def made(name: str) -> Bench:
        if name not in known:
            known[name] = profiled(name, Path(tmp_path_factory.mktemp(name)))
        return known[name]

    return made


def test_training_arguments_in_a_dict(bench: Callable[[str], Bench]) -> None:
    at = bench("trainer")
    rules = ("fp32-matmul", "loader-without-workers", "per-tensor-optimizer", "small-batch", "framework-wait")
    text = at.edited("transformers.TrainingArguments", *rules, "launch-bound")
    for entry in ('"bf16": True', '"optim": "adamw_torch_fused"', '"per_device_train_batch_size": 8'):
        assert entry in text
    assert "TrainingArguments(**SETTINGS" in text
    did = at.effects(text)
    assert "bfloat16" in did["products"]
    assert did["fused"] == [True]
    assert did["loaders"][0][0] == 2 and did["loaders"][0][2] is True and did["loaders"][0][3] == 8
    assert "aten.isnan" not in did["operators"]
    assert did["compiled"], "torch_compile does not reach torch.compile"


def test_a_trainer_s_time_is_below_module_paths(bench: Callable[[str], Bench]) -> None:
    costs = bench("trainer").profile.lines
    line = max(costs, key=lambda cost: cost.step_ms)
    assert "trainer.train()" in bench("trainer").script.read_text().splitlines()[line.line - 1]
    assert sum(each.device_ms for each in line.inside) == pytest.approx(line.device_ms, rel=1e-6)
    assert any(each.module == "bert.encoder.layer.*.attention.self" for each in line.inside)


def test_eager_attention_is_replaced_where_the_model_is_made(bench: Callable[[str], Bench]) -> None:
    at = bench("trainer")
    text = at.edited("transformers.PreTrainedModel._from_config", "hand-written-attention")
    assert 'attn_implementation="sdpa"' in text
    assert "aten._softmax" not in at.effects(text)["operators"]


def test_checkpointing_that_a_call_turns_on_is_turned_off_there(bench: Callable[[str], Bench]) -> None:
    at = bench("trainer")
    text = at.edited("transformers.PreTrainedModel.gradient_checkpointing_enable", "needless-checkpointing")
    assert "gradient_checkpointing" not in text
    before, after = at.effects()["operators"], at.effects(text)["operators"]
    assert after["aten._softmax"] == before["aten._softmax"] / 2, "computed once, not again in backward"


def test_training_arguments_of_a_parser(bench: Callable[[str], Bench]) -> None:
    at = bench("parsed")
    text = at.edited("transformers.TrainingArguments", "fp32-matmul", "too-few-loader-workers")
    assert "parser.set_defaults(bf16=True)" in text
    did = at.effects(text)
    assert "bfloat16" in did["products"]
    assert did["loaders"][-1][0] == 2


def test_lightning_s_trainer(bench: Callable[[str], Bench]) -> None:
    at = bench("lightning_fit")
    rules = ("fp32-matmul", "untuned-convolution", "framework-wait")
    text = at.edited("pytorch_lightning.Trainer", *rules)
    for argument in ('precision="bf16-mixed"', "benchmark=True", "enable_progress_bar=False"):
        assert argument in text
    assert "bfloat16" in at.effects(text)["products"]


def test_accelerate_s_accelerator(bench: Callable[[str], Bench]) -> None:
    at = bench("accelerated")
    text = at.edited("accelerate.Accelerator", "fp32-matmul")
    assert 'gradient_accumulation_steps=2, mixed_precision="bf16")' in text
    assert "bfloat16" in at.effects(text)["products"]


def test_the_size_in_a_configuration_is_known_where_it_is_written(bench: Callable[[str], Bench]) -> None:
    at = bench("accelerated")
    context = Context(at.profile, lambda _: at.script.read_text())
    hottest = max(at.profile.lines, key=lambda cost: cost.step_ms)
    found = configured(context, hottest.place, 100)
    assert found is not None and found.holder is not None and found.holder.by == "flow"
    line = at.script.read_text().splitlines()[found.holder.line - 1]
    assert line[found.holder.column - len("vocab_size=") :].startswith("vocab_size=100,")


def test_what_a_dataclass_gives_a_configuration_is_changed_there(bench: Callable[[str], Bench]) -> None:
    at = bench("configured")
    text = at.edited("transformers.PreTrainedConfig", "hand-written-attention")
    assert 'attn_implementation: str = "sdpa"' in text
    assert at.effects()["operators"]["aten._softmax"] > 0
    assert "aten._softmax" not in at.effects(text)["operators"]
    hottest = max(at.profile.lines, key=lambda cost: cost.step_ms)
    found = configured(Context(at.profile, lambda _: text), hottest.place, 99)
    assert found is not None and found.holder is not None
    assert text.splitlines()[found.holder.line - 1] == "    vocab_size: int = 99"


def test_a_configuration_gets_another_size_than_the_library_s(bench: Callable[[str], Bench]) -> None:
    at = bench("accelerated")
    text = at.script.read_text().replace("vocab_size=100, ", "")
    (site,) = (one for one in at.profile.facts.sites if one.facts.get("type") == "GPT2Config")
    known = Configured(site, at.construction("transformers.PreTrainedConfig"), "vocab_size", None, True)
    padded = apply(text, padding(Context(at.profile, lambda _: text), known, 50304).edits)
    assert "n_positions=32, vocab_size=50304)" in padded
    before, after = at.effects(text), at.effects(padded)
    assert (before["largest"], after["largest"]) == (50257, 50304)
    assert before["products"] == after["products"]


def test_a_loader_that_accelerate_makes_again_is_the_user_s(bench: Callable[[str], Bench]) -> None:
    at = bench("accelerated")
    text = at.script.read_text().splitlines()
    sites = [site for site in at.profile.facts.sites if site.kind == "loader"]
    assert ["DataLoader(" in text[site.line - 1] for site in sites] == [True]
    assert [text[line - 1].strip() for _, line in sites[0].uses] == ["for (ids,) in loader:"]


def test_generate_with_a_static_cache(bench: Callable[[str], Bench]) -> None:
    at = bench("generating")
    before, text = at.effects(), at.edited("transformers.GenerationMixin", "cat-in-loop")
    assert 'cache_implementation="static")' in text
    after = at.effects(text)
    assert after["operators"]["aten.cat"] < before["operators"]["aten.cat"] / 2
    assert "use_cache=True)" in at.edited("transformers.GenerationMixin", "generation-without-cache")


def test_what_a_dataclass_gives_the_generation_is_changed_there(bench: Callable[[str], Bench]) -> None:
    """`GenerationConfig` takes everything as `**kwargs`."""
    text = bench("generating_settings").edited("transformers.GenerationConfig", "generation-without-cache")
    assert "use_cache: bool = True" in text


def test_timm_s_loader_and_optimizer(bench: Callable[[str], Bench]) -> None:
    at = bench("timm_train")
    text = at.edited("timm.create_loader", "loader-without-workers", "pageable-host-copy")
    for argument in ('"num_workers": 2', "persistent_workers=True", '"store_true", default=True'):
        assert argument in text, "in the dict that the call unpacks, in the call, and at the option"
    assert at.effects(text)["loaders"][0][:3] == [2, True, True]
    text = at.edited("timm.create_optimizer_v2", "per-tensor-optimizer")
    assert at.effects(text)["fused"] == [True]


def test_timm_s_averages_stay_on_the_device(bench: Callable[[str], Bench]) -> None:
    at = bench("timm_train")
    text = at.edited("timm.ModelEmaV2", "framework-wait")
    assert "ModelEmaV3(model, device=None)" in text
    at.effects(text)
    text = at.edited("timm.ModelEmaV2", "parameter-loop")
    assert "ModelEmaV3(model, device=None)" in text
    with pytest.raises(Refused):  # torch.device("cpu") is no plain value
        at.edited("timm.ModelEmaV3", "framework-wait")


def test_timm_s_switch_of_fused_attention_is_left_out(bench: Callable[[str], Bench]) -> None:
    at = bench("timm_train")
    (found,) = asked_for(Context(at.profile, at.profile.sources.get))
    assert {one[-2:] for one in found.scores} == {(5, 5)}
    text = at.edited("timm.set_fused_attn", "hand-written-attention")
    assert "set_fused_attn(False)" not in text
    assert at.effects()["operators"]["aten._softmax"]
    assert "aten._softmax" not in at.effects(text)["operators"]


def test_a_pipeline_of_diffusers(bench: Callable[[str], Bench]) -> None:
    at = bench("diffusing")
    rules = ("fp32-matmul", "channels-first-conv")
    text = at.edited("diffusers.DiffusionPipeline.from_pretrained", *rules)
    assert "from_pretrained(folder, torch_dtype=torch.float16)" in text
    assert "pipe.unet.to(memory_format=torch.channels_last)" in text
    assert set(at.effects(text)["products"]) == {"float16"}
    with pytest.raises(Refused, match="no setting"):
        at.edited("diffusers.DiffusionPipeline.from_pretrained", "nonsense")


def test_a_pipeline_that_offloads_is_left_on_the_device(bench: Callable[[str], Bench]) -> None:
    at = bench("offloading")
    facts = at.profile.facts
    roomy = replace(facts, memory=replace(facts.memory, free_bytes=10**9))
    at = replace(at, profile=replace(at.profile, facts=roomy))
    for rule in ("pageable-host-copy", "framework-wait"):
        text = at.edited("diffusers.DiffusionPipeline.enable_model_cpu_offload", rule)
        assert 'pipe.to("cuda")\n' in text and "enable_model_cpu_offload" not in text
    lines = [entry for cost in at.profile.lines for entry in cost.inside]
    assert any("_hf_hook.pre_forward" in entry.text for entry in lines), "the text that the wait is known by"


def test_attention_in_slices_is_computed_at_once(bench: Callable[[str], Bench]) -> None:
    at = bench("slices")
    text = at.edited("diffusers.UNet2DConditionModel.set_attention_slice", "hand-written-attention")
    assert "slice" not in text.partition("\n")[2]
    assert at.effects()["operators"]["aten._softmax"]
    assert "aten._softmax" not in at.effects(text)["operators"]


def test_what_peft_s_adapters_leave_frozen_is_loaded_in_bfloat16(bench: Callable[[str], Bench]) -> None:
    at = bench("peft_lora")
    text = at.edited("transformers.PreTrainedModel._from_config", "fp32-matmul")
    assert "dtype=torch.bfloat16" in text
    products = at.effects(text)["products"]
    assert products["bfloat16"] > products["float32"] > 0, "the adapters' own stay as they are"
    text = at.edited("transformers.PreTrainedModel.gradient_checkpointing_enable", "needless-checkpointing")
    assert "save_memory = False" in text
    assert at.effects(text)["loaders"] == []


def test_processors_that_compute_attention_op_by_op_are_left_out(bench: Callable[[str], Bench]) -> None:
    at = bench("processors")
    key = "diffusers.AttentionMixin.set_attn_processor"
    text = at.edited(key, "hand-written-attention")
    assert "set_attn_processor" not in text
    assert at.effects()["operators"]["aten._softmax"]
    assert "aten._softmax" not in at.effects(text)["operators"]

    context = Context(at.profile, at.profile.sources.get)
    (found,) = asked_for(context)
    line = at.script.read_text().splitlines()[found.cost.line - 1]
    assert line.strip().startswith("loss = unet(")
    # Two attentions in each of three blocks, of 256 and 64 places and of 9 words.
    assert {one[1:] for one in found.scores} == {(256, 256), (256, 9), (64, 64), (64, 9)}
    attention = sum(one.step_ms for one in found.cost.inside if ".attn" in (one.module or ""))
    assert 0 < found.spent_ms < attention


def test_each_module_s_processor_is_one_that_uses_fused_attention(bench: Callable[[str], Bench]) -> None:
    at = bench("each_processor")
    text = at.edited("diffusers.Attention.set_processor", "hand-written-attention")
    assert "give_all(unet, AttnProcessor2_0())" in text
    assert at.effects()["operators"]["aten._softmax"]
    assert "aten._softmax" not in at.effects(text)["operators"]


@pytest.mark.parametrize(
    ("script", "key"),
    [
        ("trainer", "transformers.TrainingArguments"),
        ("lightning_fit", "pytorch_lightning.Trainer"),
        ("accelerated", "accelerate.Accelerator"),
        ("timm_train", "timm.create_loader"),
    ],
)
def test_every_argument_is_one_of_the_installed_version(
    bench: Callable[[str], Bench], script: str, key: str
) -> None:
    at = bench(script)
    sites = [site for site in at.profile.facts.sites if site.facts.get("construction") == key]
    assert sites
    known = set(sites[0].facts["parameters"])
    older = {"group_by_length"}  # renamed in transformers 5
    for setting in at.construction(key).settings:
        assert set(setting.arguments) - set(setting.where_known) <= known | older, setting
