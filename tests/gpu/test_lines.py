"""On a GPU: kernels on the right lines, sums that agree, idle time where it was planted."""

from tests.gpu.claims import *  # noqa: F403  # the claims are the tests here
