"""The entry of a checkout: ``python app.py`` is the program ``rag-assistant``; WSGI servers find ``app``."""

import shlex
import sys

from rag_assistant.__main__ import load_environment, main
from rag_assistant.records.errors import AssistantError

if __name__ == "__main__":
    # As typed, so that what --help prints works when it is typed again.
    main(shlex.join(sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]))
else:
    load_environment()

    from rag_assistant.web import create_app

    try:
        app = create_app()
    except AssistantError as error:
        raise SystemExit(str(error)) from None
