"""The device: its name and flags, its clock, its memory, its driver, its marks and its peaks."""
