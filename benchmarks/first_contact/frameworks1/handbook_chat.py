# Chat about a long handbook: the handbook is the system prompt, the user's turns come from a script
# (or from the keyboard with --interactive).
import os, sys, random

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TextStreamer

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)
WORDS = 200 if SMALL else 24000
HANDBOOK_WORDS = 60 if SMALL else 4000
SCRIPTED_TURNS = 4 if SMALL else 8


def load_tokenizer():
    specials = ["<pad>", "<unk>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    vocab = {t: i for i, t in enumerate(specials + [f"term{i}" for i in range(WORDS)])}
    backend = Tokenizer(WordLevel(vocab, unk_token="<unk>"))
    backend.pre_tokenizer = WhitespaceSplit()
    tok = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", eos_token="<|end|>")
    tok.chat_template = TEMPLATE
    return tok


def load_model(tok):
    config = Qwen2Config(
        vocab_size=(len(tok) + 127) // 128 * 128,
        hidden_size=64 if SMALL else 2048,
        intermediate_size=128 if SMALL else 5632,
        num_hidden_layers=2 if SMALL else 16,
        num_attention_heads=4 if SMALL else 16,
        num_key_value_heads=2 if SMALL else 4,
        max_position_embeddings=8192,
        bos_token_id=None,
        eos_token_id=5,
        pad_token_id=0,
    )
    config._attn_implementation = "eager"  # expert: config._attn_implementation="sdpa"
    torch.manual_seed(1)
    torch.set_default_dtype(dtype)
    with torch.device(device):
        net = Qwen2ForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return net.eval()


class Chat:
    def __init__(self, net, tok, handbook):
        self.net, self.tok = net, tok
        self.messages = [{"role": "system", "content": handbook}]
        self.settings = GenerationConfig(
            max_new_tokens=8 if SMALL else 20,
            min_new_tokens=8 if SMALL else 20,
            do_sample=True,
            top_p=0.9,
            temperature=0.7,
            repetition_penalty=1.05,
            use_cache=False,  # expert: use_cache=True
            pad_token_id=0,
            eos_token_id=5,
        )
        self.streamer = TextStreamer(tok, skip_prompt=True, skip_special_tokens=True)

    def ask(self, text):
        self.messages.append({"role": "user", "content": text})
        prompt = self.tok.apply_chat_template(self.messages, tokenize=False, add_generation_prompt=True)
        batch = self.tok(prompt, return_tensors="pt", return_token_type_ids=False).to(device)
        with torch.inference_mode():
            out = self.net.generate(**batch, generation_config=self.settings, streamer=self.streamer)
        reply = self.tok.decode(out[0, batch["input_ids"].shape[1]:], skip_special_tokens=True)
        self.messages.append({"role": "assistant", "content": reply})
        return reply


def scripted(rng, turns):
    for _ in range(turns):
        yield " ".join(f"term{rng.randrange(WORDS)}" for _ in range(rng.randint(6, 20)))


def typed():
    while line := input("you> ").strip():
        yield line


rng = random.Random(3)
tok = load_tokenizer()
chat = Chat(load_model(tok), tok, " ".join(f"term{rng.randrange(WORDS)}" for _ in range(HANDBOOK_WORDS)))
for question in typed() if "--interactive" in sys.argv else scripted(rng, SCRIPTED_TURNS):
    print("user:", question[:60])
    print("bot :", end=" ")
    chat.ask(question)
print(len(chat.messages), "messages")
