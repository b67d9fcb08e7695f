"""Everything that crosses between the server and the user's interpreter, each thing defined once.

Imported by both: by the server as ``warpline.wire``, by the runner as ``....wire``. Standard library only,
Python 3.9 syntax, dataclasses without behaviour. JSON keys are the names of the fields.
"""
