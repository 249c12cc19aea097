"""Account administration: creating, linking, disabling and deleting accounts; and the audit log."""

from typing import Any

from flask import Blueprint, Response, make_response, render_template, request, url_for
from msgspec.structs import astuple

from rag_assistant.records import ROLES, ModelUse, Person, Role
from rag_assistant.records.errors import AssistantError, InvalidRequest
from rag_assistant.runtime.mail import send_mail
from rag_assistant.web.api.account import rows_of_use
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.forms import errors_on, to_page
from rag_assistant.web.grid_files import text_of_csv
from rag_assistant.web.identity import actor, proxied
from rag_assistant.web.languages import gettext
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.request_parsing import one_of
from rag_assistant.web.routing import PEOPLE, whole_services

blueprint = Blueprint("people_pages", __name__)

AUDIT_SHOWN = 100


@blueprint.get("/people", policy=PEOPLE)
def people(**more: Any) -> str:
    """Show every account, and the last entries of the audit log, with the result of a form."""
    accounts = whole_services().accounts
    return render_template(
        "people.html",
        people=accounts.people.all(),
        linked_people=whole_services().single_sign_on.identities.people(),
        proxied=proxied(whole_services()),
        roles=ROLES,
        use=rows_of_use(),
        audit=accounts.log.newest(AUDIT_SHOWN),
        **more,
        **frame(None),
    )


@blueprint.post("/people", policy=PEOPLE)
@errors_on(people)
def add() -> Response:
    """Create an account, and send or show the link for choosing its password."""
    person = whole_services().accounts.add(request.form.get("name", ""), _role(), actor())
    return to_page("people_pages.people") if proxied(whole_services()) else _with_link(person)


@blueprint.post("/people/<int:person_id>/link", policy=PEOPLE)
def make_link(person_id: int) -> Response:
    """Send or show a new link for choosing a password."""
    return _with_link(whole_services().accounts.people.get(person_id))


@blueprint.post("/people/<int:person_id>/role", policy=PEOPLE)
def change_role(person_id: int) -> Response:
    """Set a person's role."""
    accounts = whole_services().accounts
    accounts.set_role(accounts.people.get(person_id), _role(), actor())
    return to_page("people_pages.people")


@blueprint.post("/people/<int:person_id>/disabled", policy=PEOPLE)
def disable(person_id: int) -> Response:
    """Disable or enable an account."""
    accounts = whole_services().accounts
    accounts.set_disabled(accounts.people.get(person_id), request.form.get("disabled") == "true", actor())
    return to_page("people_pages.people")


@blueprint.post("/people/<int:person_id>/delete", policy=PEOPLE)
@errors_on(people)
def delete(person_id: int) -> Response:
    """Delete an account; its data goes to somebody else or is erased, which must be confirmed by typing the name."""
    accounts = whole_services().accounts
    person = accounts.people.get(person_id)
    if request.form.get("name", "").strip() != person.name:
        raise InvalidRequest(f'Type the name "{person.name}" to delete the account.')
    to = request.form.get("give_to", "")
    whole_services().delete_account(person, actor(), accounts.people.get(to) if to else None)
    return to_page("people_pages.people")


@blueprint.get("/people/use.csv", policy=PEOPLE)
def use_as_csv() -> Response:
    """Return everybody's use for a spreadsheet; no name begins a formula there."""
    rows = [["" if value is None else str(value) for value in astuple(one)] for one in rows_of_use()]
    return Response(text_of_csv([ModelUse.__struct_fields__, *rows]), mimetype="text/csv")


def _with_link(person: Person) -> Response:
    """Email a new link to the address given, where a server for that is set; otherwise, or if it fails, show it."""
    accounts, values = whole_services().accounts, whole_services().settings.current
    link = url_for("account_pages.choose_password", link=accounts.make_link(person, actor()), _external=True)
    email = request.form.get("email", "").strip() if values.smtp_url else ""
    if not email:
        return make_response(people(link=link, linked=person))
    text = gettext("{name}, with this link you choose your password, once, within two days:", name=person.name)
    try:
        accounts.set_email(person, email, actor())
        send_mail(values, email, gettext("Choose your password"), f"{text}\n\n{link}\n")
    except AssistantError as error:
        return page_with_error(error, people(error=error, link=link, linked=person))
    return make_response(people(sent_to=email))


def _role() -> Role:
    return one_of("role", request.form.get("role", "member"), ROLES)
