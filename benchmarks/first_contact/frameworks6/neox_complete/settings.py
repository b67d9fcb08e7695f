from dataclasses import dataclass, field


@dataclass
class ModelSettings:
    vocab_size: int = 50304
    hidden_size: int = 1536
    num_hidden_layers: int = 16
    num_attention_heads: int = 12
    intermediate_size: int = 6144
    dtype: str = "float32"  # flaw: fp32-matmul


@dataclass
class DecodingSettings:
    max_new_tokens: int = 16
    min_new_tokens: int = 16
    do_sample: bool = False
    use_cache: bool = False  # flaw: generation-without-cache
    pad_token_id: int = 0
    eos_token_id: int = 1


@dataclass
class Settings:
    files: int = 3200
    prefix_tokens: int = 480
    batch_size: int = 16
    num_workers: int = 2
    model: ModelSettings = field(default_factory=ModelSettings)
    decoding: DecodingSettings = field(default_factory=DecodingSettings)

    @classmethod
    def small(cls):
        model = ModelSettings(512, 64, 2, 4, 128)
        decoding = DecodingSettings(max_new_tokens=24, min_new_tokens=24)
        return cls(files=800, prefix_tokens=48, batch_size=2, num_workers=1, model=model, decoding=decoding)
