from dataclasses import dataclass

@dataclass
class Settings:
    vocab_size: int = 50257
    hidden: int = 1024
