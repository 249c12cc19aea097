"""Errors of signing in and permissions."""

from rag_assistant.records.errors.base import AssistantError, Conflict, NotFound


class NotSignedIn(AssistantError):
    """Not signed in, or the session or token has ended."""

    def __init__(
        self, message: str = "Sign in first: open /login, or send an API token as Authorization: Bearer."
    ) -> None:
        super().__init__(message)


class SignInFailed(AssistantError):
    """The name or the password is wrong; which of them is not said."""

    def __init__(self, message: str = "The name or the password is wrong.") -> None:
        super().__init__(message)


class NotAllowed(AssistantError):
    """The person is not allowed to do this; the message says what is needed."""


class AccountNotFound(NotFound):
    """There is no such account."""

    sentence = 'There is no account "{name}".'


class NameTaken(Conflict):
    """Another account has this name."""

    sentence = 'There is already an account "{name}". Choose another name.'


class AccountsExist(Conflict):
    """The first account already exists."""

    sentence = "There is already an account. Sign in."


class LastAdmin(Conflict):
    """Without this account, nobody could manage the others."""

    sentence = "This is the last administrator who can sign in. Make somebody else an administrator first."


class StillOwns(Conflict):
    """An account cannot be deleted while something belongs to it."""

    sentence = 'Something was added to the account "{name}" meanwhile. Delete the account again.'


class CredentialNotFound(NotFound):
    """There is no such session or token, or it is somebody else's."""

    sentence = "There is no {what} {number}."


class LinkNotFound(NotFound):
    """The link to a conversation was revoked, or never existed."""

    sentence = "This link does not work; it may have been revoked."


class LinkOver(AssistantError):
    """The one-time link was used, has expired, or never existed."""

    sentence = "This link was already used or has expired. Ask an administrator for a new one."


class ProviderUnreachable(AssistantError):
    """The sign-in provider does not answer."""

    sentence = "{label} could not be reached. Try again in a moment, or sign in with a password."


class NoProvider(Conflict):
    """No provider to sign in with is set."""

    sentence = "No sign-in provider is set (oidc_issuer)."


class IdentityTaken(Conflict):
    """The provider's account is linked to another account here."""

    sentence = "That account is already linked to someone here. Unlink it there first."


class LastWayIn(Conflict):
    """Without this linked account, its person could not sign in."""

    sentence = "You would have no other way to sign in. Ask an administrator for a password link first."
