"""How a text is cut into chunks: between headings, paragraphs and sentences, before anywhere else."""

from semantic_text_splitter import MarkdownSplitter


def chunks(text: str, size: int, overlap: int) -> list[str]:
    """The chunks of a text in its order, each of at most `size` characters, verbatim but for blanks at their ends.

    Each is as much as fits of what belongs together: the sections under a heading, then paragraphs, then sentences,
    then words. A chunk begins with up to `overlap` characters of the one before it, where whole units fit. Plain text
    is cut as Markdown is, since headings and lists are often written so.
    """
    return [chunk for chunk in MarkdownSplitter(size, overlap).chunks(text) if chunk.strip()]
