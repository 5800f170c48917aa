"""Secrets: read from environment variables only, and hidden in all that can be shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

from sparq_sim.errors import SparqError

__all__ = ["HIDDEN", "is_loopback", "read_secret", "redact", "redact_message"]

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


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with a mark in the place of each secret.

    Args:
        text: What is to be shown.
        secrets: What must not be seen in it; empty ones are left out.
    """
    # The longest first: one secret may be part of another.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def redact_message(message: Mapping[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """Return a message without secrets in its texts, as of a server that repeats what it was sent.

    Args:
        message: What came; its `id` is left as it is.
        secrets: What must not be seen in it.
    """
    hidden = tuple(secrets)
    return {
        key: redact(value, hidden) if isinstance(value, str) and key != "id" else value
        for key, value in message.items()
    }


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
