"""Lines of libraries below the user's lines, and the modules that they belong to."""
