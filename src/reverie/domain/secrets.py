"""Secrets of obvious form: where they stand in a text, and the text without them."""

import re
from collections.abc import Callable, Iterator

HIDDEN = "[hidden]"
"""What stands in the place of a secret."""

# Every repetition has a bound, or can't begin inside a run of its own characters, so that no text takes long.
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and many compatible ones
    r"|[spr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}"  # Stripe
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|gl(?:pat|rt|dt|ptt|cbt|soat)-[A-Za-z0-9_-]{20,}"  # GitLab
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"  # AWS
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"  # Google
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}|dop_v1_[a-f0-9]{40,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}|lin_api_[A-Za-z0-9]{20,}"
    r"|tvly-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"  # Telegram
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # JSON Web Token (RFC 7519)
    r")"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_WEBHOOK = re.compile(r"(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/([\w/-]{10,200})")
_URL_PASSWORD = re.compile(r"://[^\s/:@]{0,256}:([^\s/]{1,256})@")
_BEARER = re.compile(r"(?i)(?<![a-z])(?:bearer|basic)[ \t]{1,8}([A-Za-z0-9._~+/=-]{16,})")
_PASSWORD = re.compile(
    r"(?i)(?P<mine>(?<!\w)(?:my|our|his|her|their|your)[ \t]{1,4}(?:\w{1,20}[ \t]{1,4}){0,2})?"
    r"pass(?:word|phrase|code|wd)[\"'`]{0,1}[ \t]{0,8}(?P<sign>:=|[:=]|(?:is|was|to)(?=[ \t:]):?)[ \t]{0,8}"
    r"(?P<value>\"[^\"\n]{3,200}\"|'[^'\n]{3,200}'|`[^`\n]{3,200}`|\S{3,200})(?P<last>[ \t]*(?:[\r\n]|\Z))?"
)
_TOKEN = re.compile(
    r"(?i)(?:(?<![a-z])(?:pwd|token|secret|credential)"
    r"|(?:api|access|secret|private|signing|encryption|account)[ _-]?key"
    r"|(?:access|auth|refresh|api|bearer|session)[ _-]?token|client[ _-]?secret)"
    r"[\"'`]{0,1}[ \t]{0,8}(?::=|[:=]|(?:is|was)(?=[ \t:]):?)[ \t]{0,8}(?P<value>[\"'`]?[^\s\"'`]{6,500})"
)
_PIN = re.compile(
    r"(?i)(?<!\w)(?:(?:pin|passcode)(?: code| number)?[ \t]{0,4}(?::|=|is[ \t:])"
    r"|cv[vc]2?(?: code)?[ \t]{0,4}(?::|=|is)?)"
    r"[ \t]{0,4}([0-9]{3,8})(?![\w-])"
)
_DIGITS = re.compile(r"(?<![\w.,])(?<!\d-)[0-9]+(?:[ -][0-9]+)*(?!\w)")
_GROUP = re.compile(r"[0-9]+")
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"  # American Express, Diners, JCB
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}"  # Discover, UnionPay
)
_PLACEHOLDER = re.compile(r"[*x.•<{\[%(]|\$[({A-Z_]|[A-Za-z_.]+\(", re.IGNORECASE)
_TELLING = re.compile(r"(?=.*[0-9!@#$%^&*+=?~])|.*[a-z][A-Z]")
_TAIL = ".,;:!?)]}>\"'`"
_ORDINARY_WORDS = (
    "weak strong wrong right correct incorrect invalid valid expired required optional missing empty blank reset "
    "changed stored saved hashed encrypted salted protected secure insecure safe unsafe unknown known forgotten "
    "lost leaked compromised set unset same different long short too not never always still also being null none "
    "true false string text here there below above following secret hidden redacted available easy hard bad good "
    "fine the that this what used shared sent rotated managed checked needed default nothing something"
)
_ORDINARY = frozenset(_ORDINARY_WORDS.split())

_FEWEST_OF_A_TOKEN = 8
_FEWEST_OF_A_PASSWORD = 4
_DIGITS_OF_A_CARD = range(13, 20)
_FIRST_OF_A_CARD = "23456"


def masked(text: str) -> str:
    """The text with `HIDDEN` in the place of each secret. Idempotent."""
    while spans := _spans(text):
        parts, end = [], 0
        for start, stop in spans:
            parts += [text[end:start], HIDDEN]
            end = stop
        text = "".join([*parts, text[end:]])
    return text


def has_secret(text: str) -> bool:
    """Whether a text holds a secret, or the mark of one that was taken out."""
    return HIDDEN in text or bool(_spans(text))


def secrets_in(text: str) -> list[str]:
    """The secrets themselves, in their order."""
    return [text[start:stop] for start, stop in _spans(text)]


def _spans(text: str) -> list[tuple[int, int]]:
    """Where secrets are: apart from each other, in their order."""
    found: list[tuple[int, int]] = []
    for finder in _FINDERS:
        found.extend(finder(text))
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _shaped(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_SHAPES, _PRIVATE_KEY):
        for match in pattern.finditer(text):
            yield match.span()


def _grouped(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_WEBHOOK, _URL_PASSWORD, _PIN):
        for match in pattern.finditer(text):
            if match[1] != HIDDEN:
                yield match.span(1)


def _bearers(text: str) -> Iterator[tuple[int, int]]:
    for match in _BEARER.finditer(text):
        if any(map(str.isdigit, match[1])):
            yield match.span(1)


def _passwords(text: str) -> Iterator[tuple[int, int]]:
    for match in _PASSWORD.finditer(text):
        value, start = _bare(match["value"], match.start("value"))
        if not value or value == HIDDEN or _PLACEHOLDER.match(value):
            continue
        quoted = match["value"][0] in "\"'`"
        said = match["sign"].strip(":=") != ""
        ends = match["last"] is not None or match["value"][-1] in ".!"
        ordinary = value.casefold() in _ORDINARY
        if said:
            # "my password is swordfish." is one, "the password is stored in …" isn't
            obvious = quoted or (match["mine"] is not None and ends and not ordinary)
        else:
            obvious = not ordinary and (quoted or ends or match["sign"] == "=")
        if len(value) >= _FEWEST_OF_A_PASSWORD and (obvious or (_TELLING.match(value) and not ordinary)):
            yield start, start + len(value)


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    for match in _TOKEN.finditer(text):
        value, start = _bare(match["value"], match.start("value"))
        if len(value) < _FEWEST_OF_A_TOKEN or value == HIDDEN or _PLACEHOLDER.match(value):
            continue
        if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
            yield start, start + len(value)


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for run in _DIGITS.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(run[0])]
        digits = "".join(run[0][start:stop] for start, stop in groups)
        # where a group ends, counted in digits, and where that is in the run
        ends: dict[int, int] = {}
        starts: list[tuple[int, int]] = []
        counted = 0
        for start, stop in groups:
            starts.append((counted, start))
            counted += stop - start
            ends[counted] = stop
        taken = 0
        for first, start in starts:
            if first < taken or digits[first] not in _FIRST_OF_A_CARD:
                continue
            for length in _DIGITS_OF_A_CARD:
                last = first + length
                if last in ends and _CARD.fullmatch(digits, first, last) and _luhn(digits[first:last]):
                    taken = last
                    yield run.start() + start, run.start() + ends[last]
                    break


def _bare(value: str, start: int) -> tuple[str, int]:
    """A value without its quotes and the signs of the sentence after it, and where it begins."""
    inner = value.lstrip("\"'`")
    if inner.startswith(HIDDEN):
        return HIDDEN, start
    return inner.rstrip(_TAIL), start + len(value) - len(inner)


def _luhn(digits: str) -> bool:
    """Whether the check digit is right (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number  # noqa: PLR2004 - the sum of a product's two digits
    return total % 10 == 0


_FINDERS: tuple[Callable[[str], Iterator[tuple[int, int]]], ...] = (
    _shaped,
    _grouped,
    _bearers,
    _passwords,
    _tokens,
    _cards,
)
