import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils.data import Dataset
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

SMALL = os.environ.get("SMALL") == "1"
SAMPLING_RATE = 16_000
transformers.logging.set_verbosity_error()


class RadioSpeech(Dataset):
    """Utterances of 3 to 30 s, kept as 16 bit PCM; features are extracted when an utterance is read."""

    def __init__(self, num_utterances, feature_extractor, vocab_size, seed=0):
        self.rng = np.random.default_rng(seed)
        seconds = 6 if SMALL else 600
        t = np.arange(seconds * SAMPLING_RATE) / SAMPLING_RATE
        tape = 0.3 * np.sin(2 * np.pi * (180 + 60 * np.sin(t)) * t) + 0.1 * self.rng.standard_normal(t.size)
        self.tape = (tape * 20000).astype(np.int16)
        longest = min(30, seconds)
        self.lengths = (self.rng.uniform(min(3, longest / 2), longest, num_utterances) * SAMPLING_RATE).astype(int)
        self.starts = [int(self.rng.integers(0, self.tape.size - n + 1)) for n in self.lengths]
        self.texts = [self.rng.integers(100, vocab_size - 1, int(self.rng.integers(40, 64))) for _ in self.lengths]
        self.feature_extractor = feature_extractor

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        audio = self.tape[self.starts[i] : self.starts[i] + self.lengths[i]].astype(np.float32) / 32768.0
        features = self.feature_extractor(audio, sampling_rate=SAMPLING_RATE).input_features[0]
        return {"input_features": features, "labels": self.texts[i].tolist()}


@dataclass
class DataCollatorSpeechSeq2SeqWithPadding:
    decoder_start_token_id: int

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        input_features = torch.from_numpy(np.stack([f["input_features"] for f in features]))
        labels = torch.full((len(features), max(len(f["labels"]) for f in features)), -100)
        for row, f in zip(labels, features):
            row[: len(f["labels"])] = torch.tensor(f["labels"])
        return {"input_features": input_features, "labels": labels}


class LossPrinter(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs and state.global_step % 200 == 0:
            print(f"{state.global_step:6d}  loss {logs['loss']:.3f}")


config = WhisperConfig(
    vocab_size=520 if SMALL else 51968,  # 51865, padded
    d_model=64 if SMALL else 768,
    encoder_layers=2 if SMALL else 12,
    decoder_layers=2 if SMALL else 12,
    encoder_attention_heads=4 if SMALL else 12,
    decoder_attention_heads=4 if SMALL else 12,
    encoder_ffn_dim=128 if SMALL else 3072,
    decoder_ffn_dim=128 if SMALL else 3072,
    max_source_positions=150 if SMALL else 1500,
    pad_token_id=2,
    bos_token_id=2,
    eos_token_id=2,
    decoder_start_token_id=3,
    suppress_tokens=None,
    begin_suppress_tokens=None,
    use_cache=False,
)
feature_extractor = WhisperFeatureExtractor(feature_size=80, chunk_length=3 if SMALL else 30)
model = WhisperForConditionalGeneration(config)

training_args = Seq2SeqTrainingArguments(  # flaw: loader-without-workers
    output_dir=tempfile.mkdtemp(prefix="whisper-radio-"),
    per_device_train_batch_size=2 if SMALL else 16,
    gradient_accumulation_steps=1,
    learning_rate=1e-5,
    warmup_steps=500,
    max_steps=1500 if SMALL else 4000,
    gradient_checkpointing=True,  # flaw: needless-checkpointing
    bf16=True,
    accelerator_config={"non_blocking": True},
    use_cpu=not torch.cuda.is_available(),
    logging_steps=25,
    logging_nan_inf_filter=False,
    save_strategy="no",
    eval_strategy="no",
    report_to=[],
    disable_tqdm=True,
    remove_unused_columns=False,
    label_names=["labels"],
)

trainer = Seq2SeqTrainer(
    args=training_args,
    model=model,
    train_dataset=RadioSpeech(400 if SMALL else 8000, feature_extractor, config.vocab_size),
    data_collator=DataCollatorSpeechSeq2SeqWithPadding(config.decoder_start_token_id),
    callbacks=[LossPrinter()],
)

if __name__ == "__main__":
    trainer.train()
