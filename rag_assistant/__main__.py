"""The program, ``rag-assistant`` or ``python app.py``: run the server, or a command.

The application is only created when it is needed: ``--help`` and ``--version`` work at once, even with invalid
settings.
"""

import gc
import os

import click

from rag_assistant import __version__, cli


class Commands(click.Group):
    """The commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the name is click's
        """Return the command names, in the order of --help."""
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
    gc.disable()  # Imported modules stay, and collecting them takes a quarter of a start. Serving enables it again.
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
    """Read the file .env beside settings.json; variables that are set take precedence.

    NumPy, which must not be imported before, uses one thread unless OPENBLAS_NUM_THREADS is set. pydantic doesn't
    search installed packages for plugins, which takes 20 ms. From here on no other process of the same user can read
    this one's memory.
    """
    from dotenv import load_dotenv

    from rag_assistant.runtime.supervised_process import close_memory
    from rag_assistant.settings.package_files import home

    close_memory()
    load_dotenv(home() / ".env")
    # For a question's cosines, several threads cost more in synchronisation than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main(name: str | None = None) -> None:
    """Run the program, from any folder. ``name`` is its name in --help."""
    load_environment()
    program(prog_name=name)


if __name__ == "__main__":
    main()
