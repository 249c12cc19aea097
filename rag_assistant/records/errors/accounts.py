"""Errors of signing in and permissions."""

from rag_assistant.records.errors.base import AssistantError, Conflict, NotFound


class NotSignedIn(AssistantError):
    sentence = "Sign in first: open /login, or send an API token as Authorization: Bearer."


class SignInFailed(AssistantError):
    sentence = "The name or the password is wrong."


class NotAllowed(AssistantError):
    """The person is not allowed to do this; the message says what is needed."""


class AccountNotFound(NotFound):
    sentence = 'There is no account "{name}".'


class NameTaken(Conflict):
    sentence = 'There is already an account "{name}". Choose another name.'


class AccountsExist(Conflict):
    sentence = "There is already an account. Sign in."


class LastAdmin(Conflict):
    sentence = "This is the last administrator who can sign in. Make somebody else an administrator first."


class StillOwns(Conflict):
    sentence = 'Something was added to the account "{name}" meanwhile. Delete the account again.'


class CredentialNotFound(NotFound):
    sentence = "There is no {what} {number}."


class LinkNotFound(NotFound):
    sentence = "This link does not work; it may have been revoked."


class LinkOver(AssistantError):
    sentence = "This link was already used or has expired. Ask an administrator for a new one."


class MailFailed(AssistantError):
    sentence = "The email could not be sent by {server}: {why}."


class ProviderUnreachable(AssistantError):
    sentence = "{label} could not be reached. Try again in a moment, or sign in with a password."


class NoProvider(Conflict):
    sentence = "No sign-in provider is set (oidc_issuer)."


class IdentityTaken(Conflict):
    sentence = "That account is already linked to someone here. Unlink it there first."


class LastWayIn(Conflict):
    sentence = "You would have no other way to sign in. Ask an administrator for a password link first."
