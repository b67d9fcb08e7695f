"""The data types of the program: frozen dataclasses without behaviour, except for derived fields."""
