"""The entry: ``python app.py`` serves the assistant; ``flask --app app`` gives its commands."""

from dotenv import load_dotenv

import rag_assistant
from rag_assistant.errors import SettingsError

load_dotenv()

if __name__ == "__main__":
    from rag_assistant.server import serve

    # Made, and its modules loaded, in the process that serves it.
    serve(lambda: rag_assistant.create_app())
else:
    try:
        app = rag_assistant.create_app()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
