"""What documents are called and made of, by their senders' words; and what of a draft is refused."""

import pytest

from reverie.domain.documents import (
    DOCX,
    HTML,
    MARKDOWN,
    PDF,
    TEXT,
    FileDraft,
    LinkDraft,
    MediaType,
    check_file,
    check_link,
    content_key,
    link_title,
    media_type_of,
    shown_name,
)
from reverie.errors import Refusals


@pytest.mark.parametrize(
    ("content_type", "name", "expected"),
    [
        ("application/pdf", "x", MediaType(PDF)),
        ("Application/PDF; charset=binary", "x", MediaType(PDF, "binary")),
        ('text/html; charset="UTF-8"', "x", MediaType(HTML, "utf-8")),
        ("text/html; charset=../../etc", "x", MediaType(HTML)),
        ("application/xhtml+xml", "x", MediaType(HTML)),
        ("text/plain", "notes.md", MediaType(MARKDOWN)),
        ("text/plain", "notes.txt", MediaType(TEXT)),
        ("text/plain", "notes.pdf", MediaType(TEXT)),
        (None, "Report.PDF", MediaType(PDF)),
        ("", "report.docx", MediaType(DOCX)),
        ("application/octet-stream", "page.htm", MediaType(HTML)),
        ("application/octet-stream", "page", None),
        ("image/png", "page.pdf", None),
        ("application/msword", "old.doc", None),
    ],
)
def test_a_media_type_is_told_by_its_sender_or_else_by_the_name(
    content_type: str | None, name: str, expected: MediaType | None
) -> None:
    assert media_type_of(content_type, name) == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("C:\\Users\\ann\\report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\0b\nc.txt", "a b c.txt"),
        ("a\ud800.txt", "a .txt"),
        ("", ""),
        ("x" * 600, "x" * 500),
    ],
)
def test_a_file_is_shown_by_its_own_name(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_a_file_is_called_as_its_sender_says() -> None:
    assert check_file(FileDraft("a.pdf", None, "  The  gates ")) == ("The gates", MediaType(PDF))
    assert check_file(FileDraft("a.pdf", None)) == ("a.pdf", MediaType(PDF))
    assert check_file(FileDraft(None, "text/plain")) == ("Untitled", MediaType(TEXT))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.org/", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("example.org", "must begin with http"),
        ("http://", "is no address"),
        ("http://a b/", "is no address"),
        ("http://[::1", "is no address"),
        ("http://example.org:99999/", "is no address"),
        ("https://ann:secret@example.org/", "must not hold a user"),
        (" ", "must not be empty"),
        (f"http://example.org/{'x' * 2_000}", "2000 at most"),
    ],
)
def test_what_is_no_link_is_refused(url: str, words: str) -> None:
    with pytest.raises(Refusals, match=words):
        check_link(LinkDraft(url))


def test_a_link_is_called_by_its_host_and_path() -> None:
    assert link_title("https://example.org/a%20b/?q=1#c") == "example.org/a b"
    assert link_title("https://example.org") == "example.org"


def test_the_same_content_is_another_document_for_another_subject() -> None:
    keys = {content_key(subject, content) for subject in (None, "", "-", "ann", "bob") for content in ("1", "2")}

    assert len(keys) == 10
