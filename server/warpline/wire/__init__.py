"""Everything that crosses between the server and the user's interpreter, each thing defined once.

Imported by both: by the server as ``warpline.wire``, by the runner as ``....wire``. Standard library only,
Python 3.9 syntax, dataclasses without behaviour. JSON keys are the names of the fields.

- ``control``, ``messages``, ``stages``: what the runner is to do, and what it tells while it does it
- ``run``, ``records``, ``facts``, ``sites``, ``births``, ``inside``, ``cudagraphs``, ``samples``: the run
  folder
- ``probing``: replacements that are tried once the script has ended
- ``timing``: what is left where only the steps are timed
- ``frameworks``, ``precision``: names that both sides refer to
"""
