"""Makes any text fit for an embedding model: legible, and cut into windows that the model can take."""

BLANK = "."
"""What is embedded for a text without a visible character: models refuse the empty text, or answer it with anything."""

_MOST_BYTES_OF_A_CHARACTER = 4
_BREAKS = ("\n", " ", "\t", "。", "、", "\N{FULLWIDTH COMMA}")


def legible(text: str) -> str:
    """The text as a model may read it: NUL as a blank, a lone surrogate as U+FFFD, and `BLANK` if nothing is left."""
    text = text.replace("\0", " ")
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if text.strip() else BLANK


def windows(text: str, limit: int) -> list[str]:
    """Cuts a legible text into consecutive windows of at most `limit` UTF-8 bytes each.

    Bytes, because no tokenizer gives more tokens than bytes and most scripts have 2 to 4 bytes to a token, so that one
    figure bounds the tokens of every script. A window ends after a blank or a comma where its second half has one,
    else between two characters. Windows without a visible character are left out; at least one window remains.

    Raises ValueError for a limit that couldn't hold every character (4 bytes).
    """
    if limit < _MOST_BYTES_OF_A_CHARACTER:
        raise ValueError(f"a window of {limit} bytes can't hold every character")
    data = text.encode()
    cut: list[str] = []
    start = 0
    while len(data) - start > limit:
        # "ignore" drops the character that the limit cut through.
        window = data[start : start + limit].decode(errors="ignore")
        last = max(window.rfind(sign) for sign in _BREAKS) + 1
        if last > len(window) // 2:
            window = window[:last]
        cut.append(window)
        start += len(window.encode())
    cut.append(data[start:].decode())
    return [window for window in cut if window.strip()] or [cut[0]]
