"""The passes of ``generate`` are noted, however the model is called."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture.runner.births.generation import Generating
from warpline.wire.generation import CALL, DECODE, ENCODER, PREFILL

torch = pytest.importorskip("torch")
PLACE = ("/train.py", 10, "<module>")


class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Linear(2, 2)
        self.decoder = torch.nn.Linear(2, 2)
        self.config = SimpleNamespace(is_encoder_decoder=False)

    def get_encoder(self) -> Any:
        return self.encoder

    def get_compiled_call(self, config: object) -> Callable[..., Any]:
        return self.called_compiled

    def called_compiled(self, x: Any) -> Any:
        assert not self._forward_hooks and not self._forward_pre_hooks, "hooks would be compiled in"
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        return self.decoder(x)


def kinds(generating: Generating) -> list[int]:
    return [span[2] for span in generating.spans]


def clean(model: Model) -> bool:
    ours = {"_compiled_call_impl", "get_compiled_call"} & set(vars(model))
    return not (model._forward_hooks or model._forward_pre_hooks or model.encoder._forward_hooks or ours)


def test_the_first_pass_is_the_prefill() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)

    def generate() -> str:
        for _ in range(3):
            model(x)
        return "text"

    assert generating.run(generate, model, PLACE) == "text"
    assert kinds(generating) == [PREFILL, DECODE, DECODE, CALL]
    assert all(begin <= end for begin, end, *_ in generating.spans)
    assert clean(model)
    model(x)
    assert len(generating.spans) == 4, "a pass outside of generate is none of its"


def test_an_encoder_s_own_pass() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)
    model.config.is_encoder_decoder = True
    generating.run(lambda: [model.encoder(x), model(x), model(x)], model, PLACE)
    assert kinds(generating) == [ENCODER, PREFILL, DECODE, CALL]
    assert clean(model)


def test_a_model_compiled_in_place_gets_no_hooks() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)
    model._compiled_call_impl = compiled = model.called_compiled
    generating.run(lambda: [model(x), model(x)], model, PLACE)
    assert kinds(generating) == [PREFILL, DECODE, CALL]
    assert model._compiled_call_impl is compiled


def test_decoding_that_transformers_compiles() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)

    def generate() -> None:
        decode = model.get_compiled_call("config")
        model(x)
        decode(x)
        decode(x)

    generating.run(generate, model, PLACE)
    assert kinds(generating) == [PREFILL, DECODE, DECODE, CALL]
    assert clean(model)


def test_a_call_within_another_is_part_of_it() -> None:
    model, draft, generating, x = Model(), Model(), Generating(), torch.ones(2)

    def generate() -> None:
        model(x)
        generating.run(lambda: draft(x), draft, PLACE)

    generating.run(generate, model, PLACE)
    assert kinds(generating) == [PREFILL, CALL]


def test_another_thread_s_passes_are_its_own() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)

    def generate() -> None:
        model(x)
        other = threading.Thread(target=lambda: model(x))
        other.start()
        other.join()

    generating.run(generate, model, PLACE)
    assert kinds(generating) == [PREFILL, CALL]


def test_an_error_of_the_script_s_leaves_nothing_behind() -> None:
    model, generating = Model(), Generating()
    with pytest.raises(RuntimeError):
        generating.run(lambda: model(torch.ones(3)), model, PLACE)
    assert kinds(generating) == [CALL] and clean(model)


def test_what_is_no_module_generates_all_the_same() -> None:
    generating = Generating()
    assert generating.run(lambda: 7, object(), PLACE) == 7


def test_timed_passes_are_counted_and_captured_ones_kept() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)
    before = time.time_ns()
    generating.run(lambda: [model(x), model(x)], model, PLACE)
    between = time.time_ns()
    generating.stop_timing([before, between])
    generating.run(lambda: [model(x), model(x), model(x)], model, PLACE)
    (found,) = generating.found([between, time.time_ns()])
    assert found.place == PLACE[:2]
    assert (found.prefills, found.decodes) == (1, 1)
    assert 0 < found.prefill_ns + found.decode_ns <= found.calls_ns <= between - before
    assert [span[2] for span in found.spans] == [PREFILL, DECODE, DECODE, CALL]


def test_collections_in_a_timed_pass_are_no_part_of_it() -> None:
    model, generating, x = Model(), Generating(), torch.ones(2)
    before = time.time_ns()
    generating.run(lambda: [model(x), model(x)], model, PLACE)
    whole = {span[2]: span[1] - span[0] for span in generating.spans}
    reads = next(span for span in generating.spans if span[2] == PREFILL)
    generating.stop_timing([before, time.time_ns()], lambda begin, end: 7 * (begin <= reads[0] < end))
    (found,) = generating.found([])
    assert (found.prefill_ns, found.decode_ns) == (whole[PREFILL] - 7, whole[DECODE])
    assert found.calls_ns == whole[CALL] - 7
