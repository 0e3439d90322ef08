"""Turns the bytes of a document into text: PDF, DOCX, HTML, Markdown and plain text, by the libraries for each.

What is parsed may have been made to harm: this runs in a process of its own (`reverie.intake.process`) alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from charset_normalizer import from_bytes

from reverie.domain import policy
from reverie.domain.documents import DOCX, HTML, MARKDOWN, PDF, TEXT
from reverie.domain.names import display_name
from reverie.errors import Unreadable

_UNPACKED_MOST = 200_000_000
"""Bytes of all that a DOCX holds, unpacked."""
_PASSWORD = 4
"""PDFium's code for a document that asks for a password."""
_HEADER_WITHIN = 1_024
"""Bytes from the beginning within which a PDF says that it is one."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"))
_MARKS_16 = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_CONTROL = r"&#(?:x0*1?[0-9a-f]|0*(?:[12]?[0-9]|3[01]))(?:;|(?![0-9a-f]))"
_CONTROLS, _CONTROL_BYTES = re.compile(_CONTROL, re.IGNORECASE), re.compile(_CONTROL.encode(), re.IGNORECASE)
"""References to signs below the blank, which no page may hold."""
_HYPHENS = re.compile("[\x02\ufffe\u00ad]\\s*\n?")
"""What PDFium writes for a hyphen at the end of a line."""
_HEADING = re.compile(r"(?:Heading|heading) ?([1-6])")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document's text, as Markdown where it has headings, and its own title."""

    text: str
    title: str | None = None


def parse(data: bytes, media_type: str, charset: str | None) -> Parsed:
    """The text of a document of one of `MEDIA_TYPES`. Raises Unreadable."""
    parsed = _PARSERS[media_type](data, charset)
    text = _fit(parsed.text)
    if not text.strip():
        raise Unreadable("holds no text")
    if len(text) > policy.READABLE_MOST:
        raise _too_long()
    title = display_name(_fit(parsed.title or "").replace("\n", " "))[: policy.TITLE_MOST]
    return Parsed(text, title or None)


def _fit(text: str) -> str:
    """The text without what no text may hold, its lines ending as ours do."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n"))


def _too_long() -> Unreadable:
    return Unreadable(f"has more than {policy.READABLE_MOST:,} characters of text")


def _joined(parts: Iterable[str], between: str) -> str:
    """The parts in one, given up as soon as they are too long."""
    kept, length = [], 0
    for part in parts:
        length += len(part)
        if length > policy.READABLE_MOST:
            raise _too_long()
        kept.append(part)
    return between.join(kept)


def _pdf(data: bytes, _: str | None) -> Parsed:
    if b"%PDF-" not in data[:_HEADER_WITHIN]:
        raise Unreadable("is no PDF inside")
    import pypdfium2 as pdfium  # noqa: PLC0415 - each process reads one kind of document

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD:
            raise Unreadable("is encrypted: it asks for a password") from None
        raise Unreadable("is damaged, or no PDF") from None

    def pages() -> Iterator[str]:
        for number in range(len(document)):
            try:
                page = document[number]
                text = page.get_textpage().get_text_range()
                page.close()
            except pdfium.PdfiumError:
                # a page that can't be read doesn't take the others with it
                continue
            yield _HYPHENS.sub("", text.replace("\r\n", "\n")).strip()

    text = _joined((page for page in pages() if page), "\n\n")
    if not text:
        raise Unreadable("has no text: its pages are pictures, whose text must be recognised before")
    return Parsed(text)


def _docx(data: bytes, _: str | None) -> Parsed:
    try:
        with ZipFile(BytesIO(data)) as packed:
            unpacked = sum(member.file_size for member in packed.infolist())
            names = set(packed.namelist())
    except (BadZipFile, ValueError, NotImplementedError):
        if data[:4] == b"\xd0\xcf\x11\xe0":
            raise Unreadable("is encrypted, or a DOC: only DOCX without a password can be read") from None
        raise Unreadable("is damaged, or no DOCX") from None
    if unpacked > _UNPACKED_MOST:
        raise Unreadable(f"unpacks to more than {_UNPACKED_MOST:,} bytes")
    if "[Content_Types].xml" not in names:
        raise Unreadable("is no DOCX inside")
    import docx  # noqa: PLC0415 - each process reads one kind of document
    from docx.table import Table  # noqa: PLC0415 - as above

    def blocks() -> Iterator[str]:
        for block in docx.Document(BytesIO(data)).iter_inner_content():
            if isinstance(block, Table):
                for row in block.rows:
                    yield " | ".join(display_name(cell.text) for cell in row.cells)
                continue
            style = block.style.name if block.style is not None else None
            heading = 1 if style == "Title" else _level(style)
            if block.text.strip():
                yield f"{'#' * heading} {display_name(block.text)}" if heading else block.text

    try:
        return Parsed(_joined(blocks(), "\n\n"))
    except (Unreadable, MemoryError):
        raise
    except Exception:
        # it raises whatever its parts meet, XML's errors and key errors among it
        raise Unreadable("is damaged, or no DOCX") from None


def _level(style: str | None) -> int:
    found = _HEADING.match(style or "")
    return int(found[1]) if found else 0


def _html(data: bytes, charset: str | None) -> Parsed:
    import trafilatura  # noqa: PLC0415 - each process reads one kind of document

    declared = _decoded(data, charset) if charset or _marked(data) else None
    page: str | bytes = _CONTROL_BYTES.sub(b" ", data) if declared is None else _CONTROLS.sub(" ", declared)
    if trafilatura.load_html(page) is None:
        # a part of a page is one, too
        page = (
            b"<html><body>%b</body></html>" % page if isinstance(page, bytes) else f"<html><body>{page}</body></html>"
        )
        if trafilatura.load_html(page) is None:
            raise Unreadable("is no HTML, or empty")
    text = trafilatura.extract(page, output_format="markdown", include_comments=False, favor_recall=True)
    # of what is no article, all that is readable
    text = text or trafilatura.html2txt(page)
    found = trafilatura.extract_metadata(page)
    return Parsed(text or "", None if found is None else found.title)


def _text(data: bytes, charset: str | None) -> Parsed:
    text = _decoded(data, charset)
    if text is None:
        best = from_bytes(data).best()
        text = None if best is None else str(best)
    if text is None or _is_binary(text):
        raise Unreadable("is no text inside")
    return Parsed(text)


def _marked(data: bytes) -> str | None:
    """The encoding that a text's first bytes name."""
    return next((name for mark, name in (*_MARKS, *_MARKS_16) if data.startswith(mark)), None)


def _decoded(data: bytes, charset: str | None) -> str | None:
    """The text by its own mark, by the sender's word, or as UTF-8; None where none of them fits."""
    for encoding in (_marked(data), charset, "utf-8"):
        if encoding is not None:
            try:
                return data.decode(encoding)
            except (UnicodeError, LookupError):
                continue
    return None


def _is_binary(text: str) -> bool:
    """Whether what was decoded was no text: more than one in ten of its signs can't be in one."""
    sample = text[:10_000]
    return 10 * len(_UNFIT.findall(sample)) > len(sample)


_PARSERS: dict[str, Callable[[bytes, str | None], Parsed]] = {
    PDF: _pdf,
    DOCX: _docx,
    HTML: _html,
    MARKDOWN: _text,
    TEXT: _text,
}
