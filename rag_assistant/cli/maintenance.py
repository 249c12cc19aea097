"""``flask reindex`` and ``flask doctor``: embed anew, compare and mend."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.documents import somebody_works, work_with_progress
from rag_assistant.cli.errors import named_errors
from rag_assistant.errors import SettingsError
from rag_assistant.runtime.data_dir import lock_data_dir

if TYPE_CHECKING:
    from rag_assistant.documents.doctor import Finding
    from rag_assistant.web.services import Services

POLL_INTERVAL_SECONDS = 0.2
LOOKS_UNTIL_QUIET = 10


def reindex_command(services: Services) -> click.Command:
    @click.command("reindex")
    @click.option("--read-again", is_flag=True, help="Read and cut every document anew, too: for another chunk_chars.")
    def reindex(read_again: bool) -> None:
        """Embed what the present embedding model has not embedded, and let search use its vectors."""
        with named_errors():
            services.prepare()
            if read_again:
                again = [services.library.read_again(number) for number in services.documents.ours()]
                if work_with_progress(services, again):
                    raise click.exceptions.Exit(1)
                return
            configured = services.embedders.configured().key
            with somebody_works(services):
                services.library.reindex()
                done, total = _show_embedding(services, configured)
            serving = services.embeddings.serving()
            is_used = serving is not None and serving.key == configured
            used = "search uses it" if is_used else "search does not use it yet"
            click.echo(f"{done} of {total} chunks are embedded by {configured}; {used}.")
            if done < total:
                click.echo(f"{_program()} documents list says which documents failed, and why.")
                raise click.exceptions.Exit(1)

    return reindex


def doctor_command(services: Services) -> click.Command:
    @click.command("doctor")
    @click.option("--fix", is_flag=True, help="Mend what can be mended.")
    def doctor(fix: bool) -> None:
        """Compare the database, the uploaded files and Chroma's index."""
        with named_errors():
            services.prepare()
            findings = list(services.doctor(with_chroma=_nobody_serves(services)).examine())
            left = _mend(services, findings) if fix and findings else len(findings)
            if not fix:
                for finding in findings:
                    click.secho(f"found: {finding.sentence}", fg="red", err=True)
        if left:
            if not fix:
                click.echo(f"{_program()} doctor --fix mends what can be mended.")
            raise click.exceptions.Exit(1)
        click.echo("Everything agrees." if not findings else "Everything else agrees.")

    return doctor


def _program() -> str:
    """Return how we were called: flask, or rag-assistant."""
    return click.get_current_context().find_root().info_name or "rag-assistant"


def _mend(services: Services, findings: list[Finding]) -> int:
    """Mend what can be mended, wait for what goes on in the background, and return how many findings are left."""
    left = 0
    with somebody_works(services):
        for finding in findings:
            if finding.mend is None:
                left += 1
                click.secho(f"left: {finding.sentence}", fg="red", err=True)
            else:
                finding.mend()
                click.echo(f"mended: {finding.sentence}")
        for _ in _until_quiet(services):
            pass
    return left


def _nobody_serves(services: Services) -> bool:
    try:
        lock_data_dir(services.data_dir).close()
    except SettingsError:
        click.echo("A server is running: it compares Chroma's index itself.")
        return False
    return True


def _show_embedding(services: Services, configured: str) -> tuple[int, int]:
    """Draw a bar until nothing is worked on any more; return how many chunks are embedded, and of how many."""
    done, total = services.embeddings.progress(configured)
    with click.progressbar(length=100, label="embedding") as bar:
        for done, total in _until_quiet(services, configured):
            bar.update(100 * done // max(1, total) - bar.pos)
    return done, total


def _until_quiet(services: Services, embedder: str = "") -> Iterator[tuple[int, int]]:
    """Yield how far a model has come, again and again, until nothing waits and nothing moves.

    Between two pieces of work there is a moment in which none is to be seen; of a server's work only the traces are.
    """
    quiet, before = 0, (-1, -1)
    while quiet < LOOKS_UNTIL_QUIET:
        time.sleep(POLL_INTERVAL_SECONDS)
        now = services.embeddings.progress(embedder)
        quiet = quiet + 1 if now == before and not services.library.busy else 0
        before = now
        yield now
