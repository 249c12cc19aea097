"""The program, ``rag-assistant`` or ``python app.py``: serve the assistant, or run one of its commands.

The application is made only when something needs it: ``--help`` and ``--version`` answer at once, also when a setting
is wrong.
"""

import gc
import os

import click

from rag_assistant import __version__, cli


class Commands(click.Group):
    """The commands, each loaded when it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the name is click's
        """Return the names, in the order in which they are listed."""
        return [*SERVING, *cli.COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command; ``None`` if there is none of that name."""
        return cli.command(cmd_name) if cmd_name in cli.COMMANDS else SERVING.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        with formatter.section("Commands"):
            serving = [(name, command.help or "") for name, command in SERVING.items()]
            formatter.write_dl([*serving, *((name, text) for name, (_, text) in cli.COMMANDS.items())])


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="rag-assistant", message="%(prog)s %(version)s")
@click.option("--host", help="Listen on this address.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port instead of the one in the settings.")
@click.pass_context
def program(ctx: click.Context, host: str | None, port: int | None) -> None:
    """Answer questions from your documents. Without a command: serve the assistant until Ctrl-C."""
    _set_for_this_run(HOST=host, PORT=port)
    if ctx.invoked_subcommand is None:
        _serve()


def _set_for_this_run(**values: object) -> None:
    os.environ.update({name: str(value) for name, value in values.items() if value is not None})


def _serve() -> None:
    gc.disable()  # What is loaded stays, and to look through it takes a quarter of a start. Serving enables it again.
    from rag_assistant.server import serve as server

    server.serve()


@click.command
@click.option(
    "--role", type=click.Choice(["both", "web", "worker"]), help="What this process does: everything, or a part."
)
def serve(role: str | None) -> None:
    """Serve the assistant until Ctrl-C, as without a command; with --role, only a part of it."""
    _set_for_this_run(ROLE=role)
    _serve()


@click.command
def worker() -> None:
    """Process documents for the web servers on the same PostgreSQL, until Ctrl-C. Same as serve --role worker."""
    _set_for_this_run(ROLE="worker")
    _serve()


# These load the application in a process of their own.
SERVING = {"serve": serve, "worker": worker}


def load_environment() -> None:
    """Read the file .env beside settings.json; a variable that is set already stays as it is.

    NumPy, which is not to be imported before, multiplies with one thread unless OPENBLAS_NUM_THREADS says otherwise.
    pydantic does not look for plugins in all packages that are installed, which takes 20 ms.
    From here on no other process of the same person reads what is in it.
    """
    from dotenv import load_dotenv

    from rag_assistant.runtime.supervised_process import close_memory
    from rag_assistant.settings.package_files import home

    close_memory()
    load_dotenv(home() / ".env")
    # Several threads that wait for each other cost more than the cosines of a question.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main(name: str | None = None) -> None:
    """Run the program, from whatever folder. ``name`` is what its help calls it."""
    load_environment()
    program(prog_name=name)


if __name__ == "__main__":
    main()
