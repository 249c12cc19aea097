"""Conversations shared by link: created and revoked by their owner, read by anybody signed in."""

from flask import Blueprint, Response, make_response, render_template, request

from rag_assistant.web.api.sharing import make_link, read_shared, revoke
from rag_assistant.web.forms import as_form, to
from rag_assistant.web.markdown.render import render_markdown, too_much_for_page
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.routing import ASK_AS_PERSON, READ_AS_PERSON, services

blueprint = Blueprint("shared_pages", __name__)


@blueprint.get("/conversations/<int:conversation_id>/links", policy=READ_AS_PERSON)
def links(conversation_id: int, new_link: str | None = None) -> str:
    """Show the links to a conversation, with the address of a new one."""
    conversation = services().conversations.get(conversation_id)
    return render_template(
        "links.html", links=services().links.of(conversation_id), new_link=new_link, **frame(conversation)
    )


@blueprint.post("/conversations/<int:conversation_id>/links", policy=ASK_AS_PERSON)
def make(conversation_id: int) -> Response:
    """Create a link to a conversation and show it, once."""
    _, address = make_link(conversation_id, request.form.get("sources") == "true")
    return make_response(links(conversation_id, address))


blueprint.post("/conversations/<int:conversation_id>/links/<int:link_id>/end", policy=ASK_AS_PERSON)(
    as_form(revoke, to("shared_pages.links", "conversation_id"))
)


@blueprint.get("/shared", policy=READ_AS_PERSON)
def shared() -> str:
    """Show a shared conversation, with the sources that its owner shares and the reader may read."""
    conversation = read_shared(request.args.get("link", ""))
    plain = too_much_for_page([turn.answer for turn in conversation.turns])
    drawn = [
        (turn, render_markdown(turn.answer, plain=nth in plain), turn.sources)
        for nth, turn in enumerate(conversation.turns)
    ]
    return render_template(
        "shared.html", title=conversation.title, owner=conversation.owner, shown=drawn, **frame(None)
    )
