"""An OpenID Connect provider on loopback that does what a test tells it, lies included.

It checks what a client must send: the PKCE verifier, the redirect URI, the client's secret. A code works once. Every
user consents at once.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "assistant", "canary-of-the-client"
# Takes header, claims and the provider's key, and returns the ID token to send.
Signer = Callable[[dict[str, Any], dict[str, Any], RSAKey], str]


@lru_cache
def key_named(name: str) -> RSAKey:
    """Return a cached key pair, since creating one is slow."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"})


def signed(header: dict[str, Any], claims: dict[str, Any], key: RSAKey) -> str:
    """Return an ID token signed as by an honest provider."""
    return jwt.encode(header, claims, key, algorithms=[header["alg"]])


@dataclass
class StubProvider:
    """``user`` is who signs in; ``in_token`` names the claims in the ID token, the rest is in the user info."""

    user: dict[str, Any] = field(default_factory=lambda: {"sub": "248", "preferred_username": "zoe"})
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    sign: Signer = signed
    key: RSAKey = field(default_factory=lambda: key_named("first"))
    # Responses to send instead: status and body, by path.
    broken: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/authorize?"):
                    self._agree()
                else:
                    self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

            def _agree(self) -> None:
                url = provider.issuer + self.path
                back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
                self.send_response(303)
                self.send_header("Location", f"{back}?{query_of(provider.authorize(url))}")
                self.end_headers()

            def _answer(self, body: bytes) -> None:
                status, content = provider.answer(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def authorize(self, url: str, **answer: str) -> dict[str, str]:
        """Return the callback parameters after the user has consented."""
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        asked = dict(parse_qsl(parts.query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer} | answer

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Return status and body."""
        self.requests.append(path)
        if path in self.broken:
            return self.broken[path]
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps(self._configuration()).encode()
        if path == "/jwks":
            return 200, json.dumps({"keys": [self.key.as_dict(private=False)]}).encode()
        if path == "/userinfo":
            return 200, json.dumps(self.user | self.userinfo).encode()
        if path == "/token":
            return self._token(headers, {name: found[0] for name, found in parse_qs(body.decode()).items()})
        return 404, b"{}"

    def _configuration(self) -> dict[str, Any]:
        places = {
            name: f"{self.issuer}/{path}"
            for name, path in {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "jwks_uri": "jwks",
                "userinfo_endpoint": "userinfo",
                "end_session_endpoint": "logout",
            }.items()
        }
        return {"issuer": self.issuer, "authorization_response_iss_parameter_supported": True} | places | self.metadata

    def _token(self, headers: dict[str, str], sent: dict[str, str]) -> tuple[int, bytes]:
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if headers.get("Authorization") != f"Basic {basic}":
            return 401, b'{"error": "invalid_client"}'
        asked = self.codes.pop(sent["code"], None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or challenge != asked["code_challenge"] or sent["redirect_uri"] != asked["redirect_uri"]:
            return 400, b'{"error": "invalid_grant", "error_description": "canary of a description"}'
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        told = {name: value for name, value in (claims | self.user | self.claims).items() if value is not None}
        id_token = self.sign({"alg": "RS256", "kid": self.key.kid}, told, self.key)
        answer = {"access_token": "an access token", "token_type": "Bearer", "expires_in": 300, "id_token": id_token}
        return 200, json.dumps(answer).encode()


def unsigned(_header: dict[str, Any], claims: dict[str, Any], _key: RSAKey) -> str:
    """Return an ID token without a signature."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return b".".join([*parts, b""]).decode()


def signed_with_public_key(header: dict[str, Any], claims: dict[str, Any], key: RSAKey) -> str:
    """Return an ID token whose HMAC was made with the public key as its secret, as in CVE-2015-9235."""
    return _with_hmac(header, claims, key.as_pem(private=False))


def signed_with_client_secret(header: dict[str, Any], claims: dict[str, Any], _key: RSAKey) -> str:
    """Return an ID token whose HMAC was made with the client's secret."""
    return _with_hmac(header, claims, CLIENT_SECRET.encode())


def signed_by_another(header: dict[str, Any], claims: dict[str, Any], _key: RSAKey) -> str:
    """Return an ID token signed with another key under the right key's name."""
    return signed(header, claims, key_named("another"))


def with_own_key(header: dict[str, Any], claims: dict[str, Any], _key: RSAKey) -> str:
    """Return an ID token that includes its own verification key."""
    other = key_named("another")
    registry = jws.JWSRegistry(algorithms=["RS256"], strict_check_header=False)
    return jwt.encode(header | {"jwk": other.as_dict(private=False)}, claims, other, registry=registry)


def changed_afterwards(header: dict[str, Any], claims: dict[str, Any], key: RSAKey) -> str:
    """Return an ID token about somebody else with the original signature."""
    head, _, signature = signed(header, claims, key).split(".")
    other = base64.urlsafe_b64encode(json.dumps(claims | {"sub": "admin"}).encode()).rstrip(b"=").decode()
    return f"{head}.{other}.{signature}"


def _with_hmac(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    import hmac

    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header | {"alg": "HS256"}, claims)
    ]
    signature = base64.urlsafe_b64encode(hmac.new(secret, b".".join(parts), hashlib.sha256).digest()).rstrip(b"=")
    return b".".join([*parts, signature]).decode()


def query_of(answer: dict[str, str]) -> str:
    """Return a response as a query string."""
    return urlencode(answer)
