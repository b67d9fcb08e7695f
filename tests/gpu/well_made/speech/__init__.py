"""The parts of speech_config.py: configuration, data, net and loop."""
