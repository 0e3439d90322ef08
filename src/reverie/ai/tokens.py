"""How many tokens a text is to a model."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

ENCODING = "o200k_base"
"""The vocabulary of OpenAI's models since GPT-4o; others come near to it."""
_AT_ONCE = 500_000


def count_tokens(text: str) -> int:
    """The tokens of a text by `ENCODING`, special tokens read as text.

    On a platform without the vocabulary's package (bpe-openai; macOS on Intel) its UTF-8 bytes, of which a token has at
    least one: then a budget is never exceeded, and seldom used up. The first call loads the vocabulary: about a second,
    and 130 MB.
    """
    pieces = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
    return sum(_counter()(piece) for piece in pieces)


@cache
def _counter() -> Callable[[str], int]:
    if find_spec("bpe_openai") is None:
        return lambda text: len(text.encode())
    from bpe_openai import get_encoding  # noqa: PLC0415 - loaded when it is first used, since it is large

    encoding = get_encoding(ENCODING)
    return lambda text: len(encoding.encode_ordinary(text))
