"""The entry of a checkout: ``python app.py`` is the program ``rag-assistant``; ``flask --app app`` has its commands."""

from rag_assistant.__main__ import load_environment, main
from rag_assistant.errors import AssistantError

if __name__ == "__main__":
    main("python app.py")
else:
    from rag_assistant.factory import create_app

    load_environment()
    try:
        app = create_app()
    except AssistantError as error:
        raise SystemExit(str(error)) from None
