"""Documents: what they are, which kinds of them can be read, and what of a draft can't be."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.names import display_name
from reverie.errors import Unsupported

PDF = "application/pdf"
TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = (PDF, TEXT, MARKDOWN, HTML, DOCX)
"""What can be read."""
_ALIASES = {"application/x-pdf": PDF, "text/x-markdown": MARKDOWN, "application/xhtml+xml": HTML}
_SUFFIXES = {
    ".pdf": PDF,
    ".txt": TEXT,
    ".text": TEXT,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".docx": DOCX,
}
_TELL_NOTHING = {"", "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded"}
"""Media types that senders give where they know none."""
_CHARSET = re.compile(r"[\w.:+-]{1,40}", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
SCHEMES = ("http", "https")


class DocumentSource(StrEnum):
    TEXT = "TEXT"
    FILE = "FILE"
    LINK = "LINK"


class DocumentStatus(StrEnum):
    PENDING = "PENDING"
    READY = "READY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it stands; `failure` says why it couldn't be read."""

    id: str
    title: str
    source: DocumentSource
    url: str | None
    media_type: str
    size_bytes: int
    status: DocumentStatus
    failure: str | None
    subject_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document; positions count from 0."""

    id: str
    text: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPolicy:
    """How documents are taken in and read."""

    bytes_most: int = 20_000_000
    """Bytes of an upload or a link."""
    chunk_size: int = 1_200
    """Characters of a chunk, at most."""
    chunk_overlap: int = 150
    """Characters that a chunk may repeat of the one before it, at most."""
    parse_seconds: float = 60.0
    """How long reading one document may take."""
    parse_memory: int = 1_024
    """Megabytes that reading one document may take."""


@dataclass(frozen=True, slots=True)
class TextDraft:
    """A document that a caller wrote out."""

    title: str
    text: str
    subject_id: str | None = None


@dataclass(frozen=True, slots=True)
class FileDraft:
    """What a caller says of a file: its own name, the type it was sent as, and what the document is to be called."""

    name: str | None
    content_type: str | None
    title: str | None = None
    subject_id: str | None = None


@dataclass(frozen=True, slots=True)
class LinkDraft:
    """An address to read."""

    url: str
    title: str | None = None
    subject_id: str | None = None


@dataclass(frozen=True, slots=True)
class MediaType:
    """What a document is made of, and in which character set, where the sender says so."""

    name: str
    charset: str | None = None


def check_text(draft: TextDraft) -> TextDraft:
    """The draft with its title trimmed; Refusals when it can't be."""
    checks = Checks()
    title = checks.name(draft.title, ("title",), policy.TITLE_MOST)
    checks.text(draft.text, ("text",), policy.DOCUMENT_TEXT_MOST)
    checks.label(draft.subject_id, ("subjectId",))
    checks.done()
    return TextDraft(title, draft.text, draft.subject_id)


def check_file(draft: FileDraft) -> tuple[str, MediaType]:
    """What an uploaded file is called and made of; Refusals when it can't be, or can't be read."""
    checks = Checks()
    title = draft.title if draft.title is None else checks.name(draft.title, ("title",), policy.TITLE_MOST)
    checks.label(draft.subject_id, ("subjectId",))
    name = shown_name(draft.name or "")
    media_type = media_type_of(draft.content_type, name)
    if media_type is None:
        checks.refuse(Unsupported(_unreadable(draft.content_type, name), ("file",)))
    checks.done()
    if media_type is None:
        raise AssertionError("refused above")
    return title or name or "Untitled", media_type


def check_link(draft: LinkDraft) -> LinkDraft:
    """The draft with its title trimmed; Refusals when it can't be."""
    checks = Checks()
    title = draft.title if draft.title is None else checks.name(draft.title, ("title",), policy.TITLE_MOST)
    checks.text(draft.url, ("url",), policy.URL_MOST)
    if (trouble := link_trouble(draft.url)) is not None:
        checks.bad(trouble, ("url",))
    checks.label(draft.subject_id, ("subjectId",))
    checks.done()
    return LinkDraft(draft.url, title, draft.subject_id)


def link_trouble(url: str) -> str | None:
    """Why an address can't be read whatever is there; None where it can be tried."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"is no address: {error}"
    if parts.scheme.lower() not in SCHEMES:
        return "must begin with http:// or https://"
    if not host or any(sign.isspace() for sign in url):
        return "is no address of a page"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password"
    return None


def link_title(url: str) -> str:
    """What a linked document is called until its page says so: its host and path."""
    parts = urlsplit(url)
    shown = display_name(_CONTROLS.sub(" ", f"{parts.hostname or ''}{unquote(parts.path).rstrip('/')}"))
    return shown[: policy.TITLE_MOST] or "Untitled"


def shown_name(name: str) -> str:
    """A file's own name, without folders and what can't be shown."""
    last = PurePosixPath(name.replace("\\", "/")).name
    return display_name(_CONTROLS.sub(" ", last))[: policy.TITLE_MOST]


def media_type_of(content_type: str | None, name: str) -> MediaType | None:
    """What a document is made of, by its sender's word or else by the end of its name; None for what can't be read."""
    declared, *parameters = (part.strip() for part in (content_type or "").split(";"))
    declared = declared.lower()
    charset = None
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and _CHARSET.fullmatch(value.strip().strip('"')):
            charset = value.strip().strip('"').lower()
    suffix = _SUFFIXES.get(PurePosixPath(name.lower()).suffix)
    if declared in _TELL_NOTHING:
        return None if suffix is None else MediaType(suffix, charset)
    declared = _ALIASES.get(declared, declared)
    if declared == TEXT and suffix in (MARKDOWN, HTML):
        # senders call much plain text that is more
        return MediaType(suffix, charset)
    return MediaType(declared, charset) if declared in MEDIA_TYPES else None


def _unreadable(content_type: str | None, name: str) -> str:
    known = (content_type or "").partition(";")[0].strip().lower()
    shown = f"{known[:100]!r}" if known not in _TELL_NOTHING else f"a file named {name[-40:]!r}"
    return f"{shown} can't be read; PDF, text, Markdown, HTML and DOCX can"


def unreadable_link(content_type: str | None, url: str) -> str:
    """Why what a link leads to can't be read, by the type it was sent as."""
    return _unreadable(content_type, urlsplit(url).path)


def content_hash(parts: Iterable[bytes]) -> str:
    """The SHA-256 of a content, in hexadecimal."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def content_key(subject_id: str | None, content: str) -> str:
    """By what two documents of a tenant are one: the subject and the hash of the content, as one text.

    The subject is hashed too: a key of an index must be short.
    """
    owner = "-" if subject_id is None else hashlib.sha256(subject_id.encode()).hexdigest()
    return f"{owner}:{content}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it was read: its text, its words as they are indexed, and the forms of what in it could be a name."""

    text: str
    words: str
    forms: Sequence[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a document turned out to hold; the title is its own, where it has one."""

    passages: Sequence[Passage]
    title: str | None = None
