"""Complete the first lines of many source files, batch by batch, and count what repeats."""

import json
import os
import tempfile
import time
from dataclasses import asdict

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GenerationConfig, GPTNeoXConfig, GPTNeoXForCausalLM

from settings import Settings


class Prefixes(Dataset):
    """The first `length` tokens of each file; shorter files were left out before."""

    def __init__(self, files, length, vocab_size):
        self.files, self.length, self.vocab_size = files, length, vocab_size

    def __len__(self):
        return self.files

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return {"file": i, "input_ids": torch.randint(2, self.vocab_size, (self.length,), generator=generator)}


class Completer:
    def __init__(self, settings: Settings):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        # the length grows with each token, and cuDNN would plan for each
        torch.backends.cuda.enable_cudnn_sdp(False)
        options = asdict(settings.model)
        dtype = getattr(torch, options.pop("dtype"))
        with torch.device(self.device):
            model = GPTNeoXForCausalLM(GPTNeoXConfig(bos_token_id=1, eos_token_id=1, **options))
        self.model = model.to(dtype).eval()
        self.generation_config = GenerationConfig(**asdict(settings.decoding))

    @torch.inference_mode()
    def complete(self, input_ids):
        input_ids = input_ids.to(self.device, non_blocking=True)
        out = self.model.generate(
            input_ids, attention_mask=torch.ones_like(input_ids), generation_config=self.generation_config
        )
        return out[:, input_ids.shape[1] :].cpu()


def main():
    settings = Settings.small() if os.environ.get("SMALL") == "1" else Settings()
    torch.manual_seed(0)
    completer = Completer(settings)
    loader = DataLoader(
        Prefixes(settings.files, settings.prefix_tokens, settings.model.vocab_size),
        batch_size=settings.batch_size,
        num_workers=settings.num_workers,
        pin_memory=completer.device.type == "cuda",
    )
    path = os.path.join(tempfile.mkdtemp(prefix="completions_"), "completions.jsonl")
    start, tokens = time.time(), 0
    with open(path, "w") as f:
        for number, batch in enumerate(loader):
            completions = completer.complete(batch["input_ids"])
            for file, row in zip(batch["file"].tolist(), completions.tolist()):
                f.write(json.dumps({"file": file, "completion": row, "distinct": len(set(row))}) + "\n")
            tokens += completions.numel()
            if number % 10 == 0:
                print(f"batch {number}/{len(loader)}  {tokens / (time.time() - start):.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
