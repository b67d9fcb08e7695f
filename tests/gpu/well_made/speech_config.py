"""A keyword spotter in several modules, built from a configuration."""

from speech.config import Config
from speech.engine import Engine

if __name__ == "__main__":
    Engine(Config(batch_size=512, workers=8)).fit()
