"""The entry: ``python app.py`` serves the assistant; ``flask --app app`` gives its commands."""

from dotenv import load_dotenv

load_dotenv()

if __name__ == "__main__":
    from rag_assistant.serve import serve

    serve()
else:
    from rag_assistant import create_app
    from rag_assistant.errors import SettingsError

    try:
        app = create_app()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
