"""What random edits are made of: lines, places, and what a row may be a line of."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: Lines as scripts have them: unique ones, ones that come again and again, blanks, brackets, and letters
#: that are longer in UTF-16, or end a line for str.splitlines and for nobody else.
WORDS = [
    *(f"    x{n} = self.layer{n}(x{n - 1})" for n in range(1, 12)),
    *(["    h = torch.relu(h)", "        )", "    else:", "", "", "    loss.backward()"] * 2),
    "    label = '😀 \u2028 é'",
    "    # a comment alone",
    "\x0cdef forward(self, x):",
    "    return x",
]
line = st.sampled_from(WORDS)
place = st.integers(0, 200)


@dataclass
class Row:
    text: str
    ids: frozenset[int]  # lines of the run that this may be; none for a new one


SETTINGS = settings(
    max_examples=300,
    stateful_step_count=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
