"""Many ranks of one job: each one's run or trace -> a small table; only the tables are merged.

``reduce.py`` makes the table of one rank, ``engine.py`` runs it for hundreds, on this machine or on Dask,
``merge.py`` says what each line costs on which rank, and which rank the others wait for.
"""

from warpline.ranks.engine import reduced
from warpline.ranks.merge import Merged, line_of, merge
from warpline.ranks.reduce import table_from

__all__ = ["Merged", "line_of", "merge", "reduced", "table_from"]
