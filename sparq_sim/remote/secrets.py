"""Secrets: read from environment variables only, and hidden in all that can be shown."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

from sparq_sim.errors import SparqError

__all__ = ["HIDDEN", "is_loopback", "make_token", "read_secret", "redact", "redact_message"]

HIDDEN = "[secret]"
"""What is shown in the place of a secret."""


def read_secret(name: str) -> str:
    """Return the secret that an environment variable holds.

    Args:
        name: The name of the variable.

    Raises:
        SparqError: The variable is not set or empty, or holds a line break; the message names the
            variable, and never shows what it holds.
    """
    secret = os.environ.get(name, "")
    if not secret:
        raise SparqError(
            f"the environment variable {name} is not set; a secret is read from there: "
            f"run `export {name}=...` before the play"
        )
    if not secret.isprintable():
        raise SparqError(
            f"the environment variable {name} holds a line break or another control character, "
            "which no secret can have; set it again without"
        )
    return secret


def make_token() -> str:
    """Return a new token, which nobody can guess; 24 characters that a URL can have."""
    return secrets.token_urlsafe(18)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with a mark in the place of each secret, also as JSON or a URL would have it.

    Text that is shown in part is redacted first and cut then: a part of a secret is not found.

    Args:
        text: What is to be shown.
        secrets: What must not be seen in it; empty ones are left out.
    """
    forms = {
        form
        for secret in filter(None, secrets)
        for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))
    }
    # The longest first: one secret may be part of another.
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def redact_message(message: Mapping[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """Return a message without secrets in its texts, as of a server that repeats what it was sent.

    Args:
        message: What came; its `id` is left as it is.
        secrets: What must not be seen in it.
    """
    hidden = tuple(secrets)
    if not hidden:
        return dict(message)
    return {
        redact(key, hidden): value if key == "id" else _redact_within(value, hidden)
        for key, value in message.items()
    }


def _redact_within(value: Any, secrets: tuple[str, ...]) -> Any:
    match value:
        case str():
            return redact(value, secrets)
        case list():
            return [_redact_within(each, secrets) for each in value]
        case dict():
            return {redact(k, secrets): _redact_within(v, secrets) for k, v in value.items()}
    return value


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself, so that nobody else reads what is sent to it.

    Args:
        host: By name or number.
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
