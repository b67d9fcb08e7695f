"""The nouns of the program: frozen dataclasses, no behaviour beyond derived fields."""
