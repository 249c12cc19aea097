"""What one person may take of a server that others use, too: questions a minute, answers and requests at once, bytes.

And the tokens that models may take within a day, for one person and for all.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal

from rag_assistant.records.errors import LimitReached, SharedLimitReached, StorageFailed
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import UsageStore

log = logging.getLogger(__name__)

# Reading is quick, an upload is hashed and kept. What waits is an answer, which others have limits for.
Kind = Literal["reading", "upload", "waiting"]
# Of the spare threads of the server, and of one for each running answer.
MAX_PLACES: dict[Kind, int] = {"reading": 16, "upload": 4, "waiting": 32}
RETRY_PLACE_SECONDS = 1.0
MEGABYTE = 1_000_000


class Places:
    """What one person occupies of a server at one moment: threads are for all, and nobody may hold them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Kind] = Counter()

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return what gives it back. Raises LimitReached."""
        with self._lock:
            if self._taken[kind] >= MAX_PLACES[kind]:
                raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_PLACE_SECONDS)
            self._taken[kind] += 1

        def give_back() -> None:
            with self._lock:
                self._taken[kind] -= 1

        return give_back


class PersonalLimits:
    """Refuses what is more than one person's share. The limits are settings; null is none.

    ``process`` gives the name under which others know that this process lives.
    """

    def __init__(
        self, usage: UsageStore, person_id: int, settings: Callable[[], Settings], process: Callable[[], str]
    ) -> None:
        self.places = Places()
        self.of_models = TokenLimits(settings, usage, person_id)
        self.usage = usage
        self.person_id = person_id
        self._settings = settings
        self._process = process
        # What is not being answered any more, until that is kept.
        self._ended: set[int] = set()

    def take_question(self) -> int:
        """Count a question that is about to be answered, and return the number under which it is released.

        Raises LimitReached; then it does not count.
        """
        self._keep_ended()
        settings = self._settings()
        at_once, per_minute = settings.max_running_answers_per_person, settings.max_questions_per_minute
        return self.usage.take_question(self.person_id, self._process(), at_once, per_minute)

    def release_question(self, number: int) -> None:
        """Let another question be answered in the place of one."""
        self._ended.add(number)
        try:
            self._keep_ended()
        except StorageFailed as error:  # The next question keeps it.
            log.warning("The end of an answer could not be counted: %s", error)

    def _keep_ended(self) -> None:
        if ended := self._ended.copy():
            self.usage.release_questions(ended)
            self._ended -= ended

    def max_bytes(self) -> int | None:
        """Return how many bytes all files of a person may have."""
        limit = self._settings().max_stored_mb_per_person
        return None if limit is None else limit * MEGABYTE


class TokenLimits:
    """Counts the tokens that models take, and refuses more where a day's limit is reached.

    Both over everybody's usage and over that of one person, if there is one. What is being answered goes on.
    """

    def __init__(self, settings: Callable[[], Settings], usage: UsageStore, person_id: int | None = None) -> None:
        self._settings = settings
        self._usage = usage
        self._person_id = person_id

    def count(self, tokens: int) -> None:
        """Count what a request to a model took; nobody's, only where that is limited."""
        if self._person_id is None and self._settings().max_tokens_per_day is None:
            return
        try:
            self._usage.keep_tokens(tokens, self._person_id)
        except StorageFailed as error:  # The answer is worth more than its figure.
            log.warning("%s tokens could not be counted: %s", tokens, error)

    def refuse_beyond(self) -> None:
        """Refuse what would ask a model. Raises LimitReached, SharedLimitReached."""
        settings = self._settings()
        mine, all_together = settings.max_tokens_per_day_per_person, settings.max_tokens_per_day
        if self._person_id is not None and mine is not None and self._usage.tokens(self._person_id) >= mine:
            what = f"You have used {mine} tokens within a day"
            raise LimitReached(what, self._usage.seconds_until_below(mine, self._person_id))
        if all_together is not None and self._usage.tokens(None) >= all_together:
            what = f"This server has used {all_together} tokens within a day, which is its limit"
            raise SharedLimitReached(what, self._usage.seconds_until_below(all_together, None))
