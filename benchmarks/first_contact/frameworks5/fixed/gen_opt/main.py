"""Batch inference: continue a list of product descriptions by a few tokens with model.generate."""
import os

import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import GenerationConfig, OPTConfig, OPTForCausalLM

SMALL = os.environ.get("SMALL") == "1"
BATCH_SIZE = 2 if SMALL else 32
PROMPT_TOKENS = 16 if SMALL else 160
NEW_TOKENS = 4 if SMALL else 12
NUM_PROMPTS = 8 if SMALL else 16000


class PromptWindows(Dataset):
    """The last PROMPT_TOKENS tokens of each description (all are longer than that)."""

    def __init__(self, count, length, vocab_size):
        g = torch.Generator().manual_seed(1)
        self.ids = torch.randint(4, vocab_size, (count, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i]


class TextCompleter:
    def __init__(self, device):
        self.device = device
        config = OPTConfig(
            vocab_size=512 if SMALL else 50272,
            hidden_size=32 if SMALL else 768,
            word_embed_proj_dim=32 if SMALL else 768,
            num_hidden_layers=2 if SMALL else 12,
            num_attention_heads=2 if SMALL else 12,
            ffn_dim=64 if SMALL else 3072,
        )
        self.model = OPTForCausalLM(config)
        self.model.eval().to(device, torch.bfloat16)
        self.generation_config = GenerationConfig(
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=True,
            pad_token_id=config.pad_token_id,
            bos_token_id=config.bos_token_id,
        )

    @torch.inference_mode()
    def __call__(self, input_ids):
        input_ids = input_ids.to(self.device, non_blocking=True)
        output = self.model.generate(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            generation_config=self.generation_config,
        )
        return output[:, input_ids.shape[1] :].clone()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    completer = TextCompleter(device)
    prompts = PromptWindows(NUM_PROMPTS, PROMPT_TOKENS, completer.model.config.vocab_size)
    loader = DataLoader(
        prompts,
        batch_size=BATCH_SIZE,
        num_workers=2,
        pin_memory=torch.cuda.is_available(),
    )
    results = []
    for input_ids in tqdm(loader, mininterval=20):
        results.append(completer(input_ids))
    results = torch.cat(results).cpu()
    print("completed", tuple(results.shape), "distinct tokens", results.unique().numel())


if __name__ == "__main__":
    main()
