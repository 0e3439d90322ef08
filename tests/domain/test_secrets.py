"""Secrets of obvious form are found and hidden, and prose isn't taken for one."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.secrets import HIDDEN, has_secret, masked, secrets_in

WORDS = ["the", "a", "cat", "prefers", "tabs", "over", "spaces", "in", "every", "file,", "and", "likes", "tea."]
LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG1hJ2kL3nP4"
KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{LETTERS[:20]}"

SECRETS = [
    (f"my key is sk-{LETTERS[:24]}.", f"sk-{LETTERS[:24]}"),
    (f"sk-proj-{LETTERS[:30]}", f"sk-proj-{LETTERS[:30]}"),
    (f"sk-ant-api03-{LETTERS[:30]}", f"sk-ant-api03-{LETTERS[:30]}"),
    (f"use ghp_{LETTERS[:36]} to push", f"ghp_{LETTERS[:36]}"),
    (f"github_pat_{LETTERS[:30]}", f"github_pat_{LETTERS[:30]}"),
    (f"glpat-{LETTERS[:20]}", f"glpat-{LETTERS[:20]}"),
    ("xox" + "b-123456789012-abcdefghij", "xoxb-123456789012-abcdefghij"),
    ("AKIA" + "IOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("AIza" + LETTERS[:35], "AIza" + LETTERS[:35]),
    (f"sk_live_{LETTERS[:24]}", f"sk_live_{LETTERS[:24]}"),
    (f"hf_{LETTERS[:34]}", f"hf_{LETTERS[:34]}"),
    (f"npm_{LETTERS[:36]}", f"npm_{LETTERS[:36]}"),
    (f"123456789:AA{LETTERS[:33]}", f"123456789:AA{LETTERS[:33]}"),
    (f"https://hooks.slack.com/services/T0/B0/{LETTERS[:20]}", f"T0/B0/{LETTERS[:20]}"),
    (f"token {JWT}", JWT),
    (f"Authorization: Bearer {LETTERS[:24]}", LETTERS[:24]),
    (f"before\n{KEY_BLOCK}\nafter", KEY_BLOCK),
    (KEY_BLOCK[:50], KEY_BLOCK[:50]),
    ("postgres://app:hunter2@db.example/x", "hunter2"),
    ("redis://:p@ss-word@cache:6379", "p@ss-word"),
    ("my password is hunter2", "hunter2"),
    ("My password is swordfish.", "swordfish"),
    ("the wifi password is 'correct horse battery'", "correct horse battery"),
    ("PASSWORD=swordfish", "swordfish"),
    ("DB_PASSWORD: s3cret!pass", "s3cret!pass"),
    ('{"password": "abcdefg"}', "abcdefg"),
    ("his old passphrase was tr0ub4dor&3, I think", "tr0ub4dor&3"),
    ("password to hunter2", "hunter2"),
    (f"api_key = {LETTERS[:20]}", LETTERS[:20]),
    (f"GITHUB_TOKEN={LETTERS[:20]}", LETTERS[:20]),
    (f"clientSecret: '{LETTERS[:20]}'", LETTERS[:20]),
    (f"the access token is {LETTERS[:20]}.", LETTERS[:20]),
    ("my PIN is 4821", "4821"),
    ("cvv 123", "123"),
    ("card 4111 1111 1111 1111 exp 12/30", "4111 1111 1111 1111"),
    ("5500-0000-0000-0004", "5500-0000-0000-0004"),
    ("amex 378282246310005.", "378282246310005"),
    ("order 12 4111111111111111", "4111111111111111"),
]

PROSE = [
    "",
    "I prefer tabs for indentation.",
    "My password is weak.",
    "The password is stored in the vault and rotated every month.",
    "Your password is required.",
    "password: required",
    "The secret is to add salt, and a token of thanks.",
    "The token is valid for an hour; max_tokens=4096.",
    "Forgot your password? Reset it.",
    "the password was changed yesterday",
    "She is the bearer of responsibilities-and-good-news.",
    "Basic understanding of internationalization",
    "PASSWORD=${DB_PASSWORD} or password = <your password> or password: ********",
    "api_key = os.environ['KEY']",
    "See https://example.com:8080/a@b and mail a@b.example.",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "id 550e8400-e29b-41d4-a716-446655440000, uuid7 0198c3f4-1c6b-7c3e-8f2a-4b5c6d7e8f90",
    "call +44 20 7946 0958 or 4111 1111 1111 1112",
    "1764470271000 ms, 3.14159265358979, 12345678901234567890",
    "4111111111111111111111111111",
    "The sk-learn-contrib-metric-learning package; glow-in-the-dark-stickers-set",
    "GPIO pin 100 is high; pin: see the board.",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "We tokenise text and keep secrets in a vault; key = name of the entry",
    "Turn the key: left is open",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_found_and_nothing_else_is_hidden(text: str, secret: str) -> None:
    assert secrets_in(text) == [secret]
    assert masked(text) == text.replace(secret, HIDDEN)
    assert has_secret(text)
    assert has_secret(masked(text))


@pytest.mark.parametrize("text", PROSE)
def test_prose_holds_no_secret(text: str) -> None:
    assert masked(text) == text
    assert not has_secret(text)


def test_several_secrets_of_one_text_are_hidden() -> None:
    text = "\n".join(text for text, _ in SECRETS if not text.startswith("-----BEGIN"))

    hidden = masked(text)

    for _, secret in SECRETS:
        if len(secret) > 10 and not secret.startswith("-----BEGIN"):
            assert secret not in hidden


pieces = st.sampled_from(
    [text for text, _ in SECRETS]
    + PROSE
    + [
        "password is ",
        "token=",
        "://",
        ":",
        "@",
        "bearer ",
        "4111 ",
        "1111 ",
        "-",
        '"',
        "'",
        " ",
        "\n",
        "[",
        HIDDEN,
        "sk-",
    ]
)


@settings(deadline=None)  # the machine may be busy
@given(st.one_of(st.text(), st.lists(pieces, max_size=8).map("".join)))
def test_any_text_can_be_masked_and_once_is_enough(text: str) -> None:
    hidden = masked(text)

    assert masked(hidden) == hidden
    assert secrets_in(hidden) == []
    assert has_secret(text) == (hidden != text or HIDDEN in text)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_plain_words_are_left_alone(words: list[str]) -> None:
    text = " ".join(words)

    assert masked(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "1",
        "4 ",
        "1-",
        "sk-",
        "://",
        "://a:",
        "my ",
        "password is ",
        "eyJ",
        "eyJa.",
        "-----BEGIN ",
        "bearer ",
        "token ",
    ],
)
def test_a_long_text_takes_no_long_time(part: str) -> None:
    text = (part * 100_000)[:100_000]
    started = time.process_time()

    masked(text)

    assert time.process_time() - started < 5.0
