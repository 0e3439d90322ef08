"""Documents read in a process of their own: real files of each kind, and what would harm whoever reads it."""

import asyncio
import time
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import pytest
from tests import files

from reverie.domain.documents import DOCX, HTML, MARKDOWN, PDF, TEXT, DocumentPolicy, MediaType, Reading
from reverie.errors import Unreadable
from reverie.intake.reader import read_document


async def read(
    data: bytes, media_type: str, charset: str | None = None, policy: DocumentPolicy | None = None
) -> Reading:
    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        return await read_document(
            cast(BinaryIO, file), MediaType(media_type, charset), policy or DocumentPolicy(), "7k"
        )


def whole(reading: Reading) -> str:
    return "\n".join(passage.text for passage in reading.passages)


async def test_a_two_column_page_is_read_column_by_column() -> None:
    left = " ".join(f"left{number}" for number in range(60))
    right = " ".join(f"right{number}" for number in range(60))

    words = whole(await read(files.two_column_pdf(left, right), PDF)).split()

    assert words == f"{left} {right}".split()


async def test_three_hundred_pages_are_read_in_order() -> None:
    pages = [f"On page {number} the gate {number} was painted." for number in range(300)]

    reading = await read(files.pdf(pages), PDF, policy=DocumentPolicy(chunk_overlap=0))

    assert [line for line in whole(reading).splitlines() if line] == pages
    assert len(reading.passages) > 5


async def test_a_docx_keeps_its_headings_and_tables() -> None:
    text = whole(await read(files.docx_file(), DOCX))

    assert (
        text == "# Gates\n\nThe harbour has three gates.\n\n## Paint\n\nIt is green.\n\ngate | colour\n\nnorth | green"
    )


async def test_of_a_page_its_text_is_read_and_no_script() -> None:
    reading = await read(files.PAGE, HTML)

    text = whole(reading)
    assert "# The gates" in text
    assert "painted every spring" in text
    assert "Ann Miller" in text
    assert "scripted words" not in text
    assert reading.title == "The gates"


@pytest.mark.parametrize(
    ("encoding", "charset"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", None),
        ("iso-8859-1", "iso-8859-1"),
        ("cp1252", None),
        ("iso-8859-1", "no-such-charset"),
    ],
)
async def test_a_text_is_read_in_its_own_encoding(encoding: str, charset: str | None) -> None:
    said = "Über die Tore: sie werden im Frühjahr grün gestrichen, von Leuten, die dafür größte Mühe aufwenden."

    assert whole(await read(said.encode(encoding), TEXT, charset)) == said


@pytest.mark.parametrize(
    "page",
    [
        "<p>The gate is green.</p>",
        "<h1>The gate is green.</h1>",
        f"<!-- {'x' * 60} --><html><body><p>The gate is green.</p></body></html>",
        "<html><body><p>The&#x1F;gate&#31;is&#x0a;green.</p></body></html>",
        "The gate is green.",
    ],
)
@pytest.mark.parametrize("charset", [None, "utf-8"])
async def test_a_part_of_a_page_is_read_and_signs_that_none_may_hold_are_blanks(page: str, charset: str | None) -> None:
    assert "The gate is green." in " ".join(whole(await read(page.encode(), HTML, charset)).split())


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "no-such"])
async def test_a_charset_that_is_none_is_no_trouble(charset: str) -> None:
    assert whole(await read("Grüße".encode(), TEXT, charset)) == "Grüße"


async def test_a_passage_has_its_words_and_names() -> None:
    (passage,) = (await read(b"# Gates\n\nAnn Miller paints.", MARKDOWN)).passages

    assert passage.words == "7k_gate 7k_ann 7k_miller 7k_paint"
    assert "ann miller" in passage.forms


async def test_what_no_text_may_hold_is_left_out() -> None:
    reading = await read(b"one\0two\x07 three\r\nfour", TEXT)

    assert whole(reading) == "onetwo three\nfour"


@pytest.mark.parametrize(
    ("make", "media_type", "reason"),
    [
        (files.scanned_pdf, PDF, "pages are pictures"),
        (lambda: files.pdf(["secret"], password="x"), PDF, "is encrypted"),  # noqa: S106 - the file's own
        (lambda: files.pdf(["half"])[:300], PDF, "is damaged, or no PDF"),
        (lambda: b"%PDF-1.7\n" + b"\xff" * 5_000, PDF, "is damaged, or no PDF"),
        (lambda: b"<html>no pdf</html>", PDF, "is no PDF inside"),
        (lambda: files.docx_file()[:500], DOCX, "is damaged, or no DOCX"),
        (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), DOCX, "is encrypted, or a DOC"),
        (lambda: files.zip_bomb(300), DOCX, "unpacks to more than 200,000,000 bytes"),
        (lambda: files.lying_zip_bomb(300), DOCX, "is damaged, or no DOCX"),
        (lambda: bytes(range(256)) * 40, TEXT, "is no text inside"),
        (lambda: b" \n\t ", TEXT, "holds no text"),
        (lambda: b"<html><body></body></html>", HTML, "holds no text|is no HTML"),
        (lambda: b"a " * 2_100_000, TEXT, "has more than 4,000,000 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_be_read_says_why(make: Callable[[], bytes], media_type: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        await read(make(), media_type)


async def test_a_document_has_so_much_memory_and_no_more() -> None:
    # given: what its directory says it unpacks to is let pass, and is more than may be taken
    with pytest.raises(Unreadable, match="memory"):
        await read(files.zip_bomb(190), DOCX, policy=DocumentPolicy(parse_memory=256))


async def test_a_document_has_so_much_time_and_no_more() -> None:
    begin = time.monotonic()

    with pytest.raises(Unreadable, match=r"takes more than 0\.5 s"):
        await read(b"a" * 3_900_000, TEXT, policy=DocumentPolicy(parse_seconds=0.5))

    assert time.monotonic() - begin < 5


async def test_reading_leaves_the_event_loop_to_others() -> None:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            begin = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - begin)

    ticking = asyncio.create_task(tick())
    await read(files.pdf([f"page {number}" for number in range(300)]), PDF)
    ticking.cancel()

    assert longest < 0.5
