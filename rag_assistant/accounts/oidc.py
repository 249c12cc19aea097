"""A client of an OpenID Connect provider: the authorization code flow with PKCE.

Claims count once signature, issuer, audience, times and nonce are verified (OpenID Connect Core 1.0, section 3.1.3.7).
Nothing here decides who may sign in.
"""

import base64
import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.common.urls import add_params_to_uri
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, KeySet

from rag_assistant.accounts.admission import SIGN_IN_OVER, is_loopback, is_subject
from rag_assistant.records.errors import ProviderUnreachable, SignInFailed
from rag_assistant.runtime.bounded_http import INVALID, BoundedTransport, deadline

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 1_000_000
# Only asymmetric signatures: "none" and those with the client's secret don't count.
SIGNATURES = frozenset("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split())
CLOCK_SKEW_SECONDS = 60
TIMEOUT_SECONDS = 5.0
# For all requests of one exchange, heads and bodies.
MAX_SECONDS = 10.0
METADATA_LIFETIME_SECONDS = 600.0
# Waiting for a slow provider keeps a thread from others.
MAX_AT_ONCE = 16
MAX_CODE_CHARS = 4096
EMAIL = frozenset(("email", "email_verified"))
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class OpenIdProvider:
    """The provider of the settings. Its metadata and keys are fetched when needed.

    A sign-in is identified by a ``secret`` in the browser that started it, and nothing of it is stored here.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None,
        scopes: tuple[str, ...],
        label: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self.label = label
        self._client_id = client_id
        self._client_secret = client_secret
        self._scopes = " ".join(scopes)
        self._clock = clock
        self._tls = httpx2.create_ssl_context()
        self._places = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def authorization_url(self, secret: str, redirect_uri: str) -> str:
        """Return the URL to which the browser is sent. Raises ProviderUnreachable."""
        with self._connected() as client:
            url, _ = client.create_authorization_url(
                self._discover(client)["authorization_endpoint"],
                state=_derived(secret, "state"),
                nonce=_derived(secret, "nonce"),
                code_verifier=_derived(secret, "code verifier"),
                redirect_uri=redirect_uri,
            )
        return str(url)

    def claims(self, secret: str, answer: Mapping[str, str], redirect_uri: str) -> dict[str, Any]:
        """Return the claims of a user returning from the provider. Raises SignInFailed, ProviderUnreachable."""
        if not secrets.compare_digest(answer.get("state", "").encode(), _derived(secret, "state").encode()):
            raise SignInFailed(SIGN_IN_OVER)
        with self._connected() as client:
            metadata = self._discover(client)
            self._refuse_error(answer, metadata)
            offered = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            how = "basic" if "client_secret_basic" in offered else "post"
            token = client.fetch_token(
                metadata["token_endpoint"],
                grant_type="authorization_code",
                code=answer["code"],
                code_verifier=_derived(secret, "code verifier"),
                redirect_uri=redirect_uri,
                auth=client.client_auth("none" if self._client_secret is None else f"client_secret_{how}"),
            )
            claims = self._checked(client, metadata, token, _derived(secret, "nonce"))
            return self._with_userinfo(client, metadata, claims)

    def logout_url(self, return_to: str) -> str | None:
        """Return the provider's logout URL, ``None`` if it has none or can't be reached."""
        try:
            with self._connected() as client:
                url = self._discover(client).get("end_session_endpoint")
        except ProviderUnreachable:
            return None
        if not isinstance(url, str) or not is_safe_url(url):
            return None
        return str(add_params_to_uri(url, {"client_id": self._client_id, "post_logout_redirect_uri": return_to}))

    # --- the provider's response

    def _refuse_error(self, answer: Mapping[str, str], metadata: Mapping[str, Any]) -> None:
        """Refuse a response without a code, or from another provider (RFC 9207)."""
        error, code = answer.get("error"), answer.get("code", "")
        names_itself = metadata.get("authorization_response_iss_parameter_supported") is True
        if answer.get("iss", None if names_itself else self.issuer) != self.issuer:
            raise SignInFailed(f"The response is not from {self.label}. Start the sign-in again.")
        if error == "access_denied":
            raise SignInFailed(f"{self.label} denied access, or you did not consent.")
        if error is not None:
            log.warning("%s answered a sign-in with %.300r: %.300r", self.label, error, answer.get("error_description"))
            raise SignInFailed(f"{self.label} could not sign you in; see the server log. Try again.")
        if not 1 <= len(code) <= MAX_CODE_CHARS or not (code.isascii() and code.isprintable()):
            raise SignInFailed(f"{self.label} sent no code. Start the sign-in again.")

    def _checked(
        self, client: OAuth2Client, metadata: dict[str, Any], token: Mapping[str, Any], nonce: str
    ) -> dict[str, Any]:
        """Return the claims of a verified ID token."""
        decoded = self._decoded(client, metadata, str(token.get("id_token", "")))
        _refuse_unstorable(decoded.claims)
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {"iss": {"essential": True, "value": self.issuer}, "aud": {"essential": True, "value": self._client_id}},
            {"nonce": nonce, "client_id": self._client_id, "access_token": token.get("access_token")},
        )
        claims.validate(leeway=CLOCK_SKEW_SECONDS)
        if not is_subject(claims["sub"]):
            raise ValueError("The subject of the ID token is not allowed.")
        return dict(claims)

    def _decoded(self, client: OAuth2Client, metadata: dict[str, Any], id_token: str) -> jwt.Token:
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        algorithms = [name for name in offered if name in SIGNATURES]
        try:
            return jwt.decode(id_token, self._key_set(client, metadata), algorithms=algorithms)
        except (InvalidKeyIdError, BadSignatureError):
            self._keys = None  # The provider may have changed its keys.
            return jwt.decode(id_token, self._key_set(client, metadata), algorithms=algorithms)

    def _with_userinfo(
        self, client: OAuth2Client, metadata: Mapping[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the claims with those from the user info endpoint."""
        url = metadata.get("userinfo_endpoint")
        if not isinstance(url, str) or not is_safe_url(url):
            return claims
        more = _object_of(client.request("GET", url))
        if more.get("sub") != claims["sub"]:
            raise ValueError("The user info belongs to somebody else.")
        if not EMAIL.isdisjoint(claims):  # An address and its verification come from one source.
            more = {name: value for name, value in more.items() if name not in EMAIL}
        return more | claims

    # --- metadata and keys

    def _discover(self, client: OAuth2Client) -> dict[str, Any]:
        """Return the metadata (OpenID Connect Discovery 1.0)."""
        if self._metadata is not None and self._clock() - self._metadata[0] < METADATA_LIFETIME_SECONDS:
            return self._metadata[1]
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = _object_of(client.request("GET", url, withhold_token=True))
        if metadata.get("issuer") != self.issuer:
            raise ValueError(
                f"The provider gives its issuer as {metadata.get('issuer')!r}; oidc_issuer is {self.issuer!r}."
            )
        for name in NEEDED:
            if not is_safe_url(str(metadata.get(name))):
                raise ValueError(f"The provider's {name} is {metadata.get(name)!r}, which is not an https address.")
        self._metadata = self._clock(), metadata
        return metadata

    def _key_set(self, client: OAuth2Client, metadata: Mapping[str, Any]) -> KeySet:
        if self._keys is not None and self._clock() - self._keys[0] < METADATA_LIFETIME_SECONDS:
            return self._keys[1]
        keys = []
        for key in _object_of(client.request("GET", metadata["jwks_uri"], withhold_token=True))["keys"]:
            try:
                if key.get("use", "sig") == "sig" and key.get("kty") != "oct":
                    keys.append(JWKRegistry.import_key(key))
            except (JoseError, ValueError, KeyError):
                continue  # A key type that our library doesn't know.
        self._keys = self._clock(), KeySet(keys)
        return self._keys[1]

    @contextmanager
    def _connected(self) -> Iterator[OAuth2Client]:
        """Give a connection, and turn its errors into sentences."""
        if not self._places.acquire(timeout=TIMEOUT_SECONDS):
            raise ProviderUnreachable(self.label)
        client = OAuth2Client(
            self._client_id,
            self._client_secret,
            scope=self._scopes,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
            transport=BoundedTransport(MAX_ANSWER_BYTES, network=partial(httpx2.HTTPTransport, self._tls)),
            follow_redirects=False,
        )
        try:
            with client, deadline(MAX_SECONDS):
                yield client
        except (httpx2.TransportError, httpx2.HTTPStatusError, TimeoutError) as error:
            log.warning("%s (%s) could not be reached: %.300r", self.label, self.issuer, error)
            raise ProviderUnreachable(self.label) from error
        except (AuthlibBaseError, JoseError, httpx2.HTTPError, httpx2.InvalidURL, *INVALID) as error:
            log.warning("%s (%s) gave an invalid response: %.300r", self.label, self.issuer, error)
            raise SignInFailed(
                f"{self.label} sent an invalid response; see the server log. Start the sign-in again."
            ) from error
        finally:
            self._places.release()


def _derived(secret: str, what: str) -> str:
    """Return the state, the nonce or the code verifier (RFC 7636) of a sign-in. None reveals another."""
    digest = hashlib.sha256(f"{what}\0{secret}".encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_safe_url(url: str) -> bool:
    """Return whether nobody on the way can change a response from an address: https, or this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    return parts.scheme == "http" and is_loopback(host)


def _object_of(response: httpx2.Response) -> dict[str, Any]:
    response.raise_for_status()
    content = response.json()
    if not isinstance(content, dict):
        raise TypeError(f"{response.url} did not return a JSON object.")
    _refuse_unstorable(content)
    return content


def _refuse_unstorable(content: object) -> None:
    """Raise ValueError for Infinity and half characters, which Python reads and no database takes."""
    json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
