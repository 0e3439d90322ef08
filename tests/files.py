"""Real files, made when they are asked for: what documents are read from in tests."""

import struct
import zlib
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import docx
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph

PAGE = b"""<!DOCTYPE html><html><head><title>The gates of the harbour</title>
<script>var secret = "scripted words"; document.write("scripted words");</script>
<style>p { color: red }</style></head>
<body><nav><a href="/">Home</a></nav><h1>The gates</h1>
<p>The harbour has three gates, which are painted every spring by the people who live beside them.</p>
<h2>The paint</h2><p>It is green, and comes from a small factory in the hills that Ann Miller founded long ago.</p>
<script>console.log("scripted words")</script></body></html>"""


def pdf(pages: Sequence[str], *, password: str | None = None) -> bytes:
    """A PDF with one line of text on each page, encrypted where there is a password."""
    made = BytesIO()
    canvas = Canvas(made, pagesize=A4, encrypt=password)
    for text in pages:
        canvas.drawString(72, 700, text)
        canvas.showPage()
    canvas.save()
    return made.getvalue()


def two_column_pdf(left: str, right: str) -> bytes:
    """A PDF page with two columns, each set as a paragraph of many lines."""
    made = BytesIO()
    frames = [Frame(50, 50, 240, 740, id="left"), Frame(310, 50, 240, 740, id="right")]
    template = BaseDocTemplate(made, pagesize=A4)
    template.addPageTemplates([PageTemplate(id="columns", frames=frames)])
    style = getSampleStyleSheet()["BodyText"]
    style.fontSize, style.leading = 14, 18
    template.build([Paragraph(left, style), Paragraph(right, style)])
    return made.getvalue()


def scanned_pdf() -> bytes:
    """A PDF whose one page is a picture."""
    made = BytesIO()
    canvas = Canvas(made, pagesize=A4)
    canvas.drawImage(ImageReader(BytesIO(_png())), 0, 0, 400, 400)
    canvas.showPage()
    canvas.save()
    return made.getvalue()


def _png() -> bytes:
    """A grey picture of 2 by 2 points."""

    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(b"\0\x80\x80" * 2))
        + part(b"IEND", b"")
    )


def docx_file() -> bytes:
    """A DOCX with headings, paragraphs and a table."""
    document = docx.Document()
    document.add_heading("Gates", level=1)
    document.add_paragraph("The harbour has three gates.")
    document.add_heading("Paint", level=2)
    document.add_paragraph("It is green.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate((("gate", "colour"), ("north", "green"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    made = BytesIO()
    document.save(made)
    return made.getvalue()


def zip_bomb(megabytes: int) -> bytes:
    """A DOCX whose text unpacks to so many megabytes."""
    made = BytesIO()
    with ZipFile(BytesIO(docx_file())) as good, ZipFile(made, "w", ZIP_DEFLATED) as bad:
        for member in good.namelist():
            if member != "word/document.xml":
                bad.writestr(member, good.read(member))
        with bad.open("word/document.xml", "w", force_zip64=True) as text:
            for _ in range(megabytes):
                text.write(b" " * 1_000_000)
    return made.getvalue()


def lying_zip_bomb(megabytes: int) -> bytes:
    """As `zip_bomb`, but its directory says that it unpacks to almost nothing."""
    bomb = bytearray(zip_bomb(megabytes))
    name = b"word/document.xml"
    for signature, at in ((b"PK\x01\x02", 46), (b"PK\x03\x04", 30)):
        start = -1
        while (start := bomb.find(signature, start + 1)) >= 0:
            if bomb[start + at : start + at + len(name)] == name:
                size = start + (24 if signature == b"PK\x01\x02" else 22)
                bomb[size : size + 4] = struct.pack("<I", 100)
    return bytes(bomb)
