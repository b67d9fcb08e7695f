"""Writes product blurbs for batches of requests from a queue, offline."""
import logging
import os
import queue
import random
import time
from dataclasses import dataclass
from typing import Iterator, List

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, PreTrainedTokenizerFast

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("blurbs")


@dataclass(frozen=True)
class ServiceSettings:
    batch_size: int = 32
    batches: int = 16
    prompt_tokens: int = 256
    new_tokens: int = 32
    vocab: int = 32000
    hidden: int = 1024
    layers: int = 12
    device: str = "cuda" if torch.cuda.is_available() else "cpu"

    @classmethod
    def from_env(cls) -> "ServiceSettings":
        if os.environ.get("SMALL") == "1":
            return cls(batch_size=2, batches=3, prompt_tokens=16, new_tokens=12, vocab=300, hidden=64, layers=2)
        return cls()


@dataclass
class Request:
    ident: int
    text: str


class BlurbWriter:
    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.tokenizer = self._tokenizer()
        self.model = self._model()
        self.generation = GenerationConfig(  # expert: cache_implementation="static"
            max_new_tokens=settings.new_tokens,
            min_new_tokens=settings.new_tokens,
            do_sample=True,
            temperature=0.8,
            top_k=50,
            pad_token_id=0,
            eos_token_id=2,
        )

    def _tokenizer(self) -> PreTrainedTokenizerFast:
        vocab = {token: i for i, token in enumerate(["<pad>", "<unk>", "</s>"])}
        vocab.update({f"item{i}": i + 3 for i in range(self.settings.vocab - 3)})
        backend = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return PreTrainedTokenizerFast(
            tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", eos_token="</s>", padding_side="left"
        )

    def _model(self):
        s = self.settings
        config = LlamaConfig(
            vocab_size=s.vocab,
            hidden_size=s.hidden,
            intermediate_size=s.hidden * 11 // 4,
            num_hidden_layers=s.layers,
            num_attention_heads=s.hidden // 64,
            num_key_value_heads=s.hidden // 64,
            max_position_embeddings=2048,
            pad_token_id=0,
            eos_token_id=2,
        )
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)  # expert: dtype=torch.bfloat16
        return model.to(s.device).eval()

    @torch.inference_mode()
    def write(self, requests: List[Request]) -> List[str]:
        s = self.settings
        inputs = self.tokenizer(
            [r.text for r in requests],
            padding="max_length",
            truncation=True,
            max_length=s.prompt_tokens,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(s.device)
        out = self.model.generate(**inputs, generation_config=self.generation)
        return self.tokenizer.batch_decode(out[:, s.prompt_tokens :], skip_special_tokens=True)


def drain(inbox: "queue.Queue[Request]", size: int) -> Iterator[List[Request]]:
    while not inbox.empty():
        yield [inbox.get_nowait() for _ in range(min(size, inbox.qsize()))]


def main() -> None:
    settings = ServiceSettings.from_env()
    rng = random.Random(0)
    inbox: "queue.Queue[Request]" = queue.Queue()
    for ident in range(settings.batch_size * settings.batches):
        words = rng.choices(range(settings.vocab - 3), k=rng.randint(settings.prompt_tokens // 2, settings.prompt_tokens))
        inbox.put(Request(ident, " ".join(f"item{w}" for w in words)))
    writer = BlurbWriter(settings)
    for number, requests in enumerate(drain(inbox, settings.batch_size)):
        began = time.perf_counter()
        blurbs = writer.write(requests)
        log.info("batch %d: %d blurbs in %.2f s, first: %.40s", number, len(blurbs), time.perf_counter() - began, blurbs[0])


if __name__ == "__main__":
    main()
