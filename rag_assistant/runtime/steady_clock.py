"""The time for what is deleted by age: none while the clock has jumped."""

import logging
import time
from datetime import UTC, datetime, timedelta

log = logging.getLogger(__name__)

MAX_STEP = timedelta(days=1)


class SteadyClock:
    """Compares the clock with the time that has passed, which no setting of the clock changes."""

    def __init__(self) -> None:
        self._began = _began()
        self._jumped = False

    def now(self) -> datetime | None:
        """Return the time; ``None`` while it is a day off. If the clock is right now, the next start believes it."""
        moment = datetime.now(UTC)
        jumped = abs(_began() - self._began) > MAX_STEP
        if jumped and not self._jumped:
            log.error("The clock jumped to %s: nothing is deleted by age until it is back, or a restart.", moment)
        self._jumped = jumped
        return None if jumped else moment


def _began() -> datetime:
    """Return when, by the clock, the machine was started."""
    return datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))
