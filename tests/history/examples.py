"""How much the tests of this folder try: a sample by default, everything when the environment asks for it.

HISTORY_EXAMPLES=10000 sets the number of generated conversations for each property; HISTORY_TRACES=all replays every
request of every real trace under every limit.
"""

import os

from hypothesis import HealthCheck, settings

many_examples = settings(
    max_examples=int(os.environ.get("HISTORY_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
EVERY_TRACE = os.environ.get("HISTORY_TRACES") == "all"
