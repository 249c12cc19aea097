"""The entry: ``python app.py`` serves the assistant; ``flask --app app`` gives its commands."""

from dotenv import load_dotenv

load_dotenv()

if __name__ == "__main__":
    from rag_assistant.serve import serve

    serve()
else:
    from rag_assistant import create_app

    app = create_app()
