"""One file, one rule. The file's name is the rule's name; its docstring is the rule's page."""
