"""The entry: ``python app.py`` serves the assistant; ``flask --app app`` gives its commands."""

from dotenv import load_dotenv

from rag_assistant.errors import SettingsError

load_dotenv()

if __name__ == "__main__":
    from rag_assistant.server import serve

    serve("rag_assistant.factory:create_app()")
else:
    from rag_assistant.factory import create_app

    try:
        app = create_app()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
