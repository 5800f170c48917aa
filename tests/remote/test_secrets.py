from __future__ import annotations

import pytest

from sparq_sim.errors import SparqError
from sparq_sim.remote.secrets import HIDDEN, read_secret, redact, redact_message


def test_a_secret_is_what_the_environment_variable_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "s3cret")
    assert read_secret("LAB_TOKEN") == "s3cret"


@pytest.mark.parametrize("held", [None, ""])
def test_a_secret_that_is_not_set_is_an_error_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, held: str | None
) -> None:
    monkeypatch.delenv("LAB_TOKEN", raising=False)
    if held is not None:
        monkeypatch.setenv("LAB_TOKEN", held)
    with pytest.raises(SparqError, match=r"LAB_TOKEN is not set; .* run `export LAB_TOKEN="):
        read_secret("LAB_TOKEN")


def test_a_secret_with_a_line_break_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "s3cret\nHost: other")
    with pytest.raises(SparqError, match="LAB_TOKEN holds a line break") as caught:
        read_secret("LAB_TOKEN")
    assert "s3cret" not in str(caught.value)


def test_all_secrets_are_hidden_in_a_text_also_one_that_holds_another() -> None:
    text = redact("key abc, then abcdef, then key", ["abc", "abcdef", ""])
    assert text == f"key {HIDDEN}, then {HIDDEN}, then key"


def test_a_secret_is_hidden_also_as_json_and_urls_have_it() -> None:
    assert redact(r"say \"a/\u00e9\" to /?key=%22a%2F%C3%A9%22", ['"a/é"']) == (
        f"say {HIDDEN} to /?key={HIDDEN}"
    )


def test_nested_texts_and_names_of_fields_hide_secrets_too() -> None:
    message = {"id": "1", "abc": [{"abc": "an abc"}, 2.0]}
    assert redact_message(message, ["abc"]) == {
        "id": "1",
        HIDDEN: [{HIDDEN: f"an {HIDDEN}"}, 2.0],
    }


def test_texts_of_a_message_hide_secrets_and_its_id_and_numbers_stay() -> None:
    message = {"id": "abc/1", "type": "failure", "reason": "bad token abc", "seconds": 2.0}
    assert redact_message(message, ["abc"]) == message | {"reason": f"bad token {HIDDEN}"}
