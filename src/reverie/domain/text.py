"""How text becomes the words that keyword search indexes and asks for: one analysis for writing and asking.

A word is letters and digits of any script, `_` and `.` alone, so that it needs no escaping in a full-text query:

* prose: NFKC, casefold, accents folded, English stem; stop words stay in the index and are left out in asking;
* identifiers, paths, addresses, versions: the whole and its parts (`getUserById` is also `get`, `user`, `by`, `id`);
* scripts without blanks between words (Chinese, Japanese, Thai …) and Korean: pairs of neighbouring characters;
* emoji: a word each, written as `_` and its code point in hexadecimal.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from threading import Lock
from typing import NamedTuple
from unicodedata import digit, is_normalized, normalize

import regex
from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]  # ships no types

ANALYSIS_VERSION: int = 2
"""Of what is indexed by word, and how: raised with every change of that, as what was indexed by another version must be
indexed again."""

LONGEST_WORD = 64
"""Characters of a word; of a longer one the beginning and a hash are kept, in writing and asking alike."""

MOST_CLAUSES = 1000
"""Clauses of a full-text query; Lucene refuses more than 1,024."""

# The regex module instead of re for its script properties and because its letters include the marks of Indic scripts.
_NO_BLANKS = r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]--\p{Nd}]"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--{_NO_BLANKS}]"
_JOINER = r"(?!--|\.\.)[-._/\\:@+~#%=&?']{1,3}"
_PIECE = regex.compile(
    rf"(?V1)(?P<chain>{_LETTER}+(?:{_JOINER}{_LETTER}+)*)"
    rf"|(?P<pairs>(?:{_NO_BLANKS}\p{{M}}*)+)"
    r"|(?P<emoji>\p{Extended_Pictographic}|[\U0001F1E6-\U0001F1FF]{2})"
)
_SIGNED = regex.compile(rf"(?V1)(?<!{_LETTER})({_LETTER}{{1,12}})(\+\+|#(?!{_LETTER}))")
_THOUSANDS = regex.compile(r"(?<!\p{Nd})\p{Nd}{1,3}(?:,\p{Nd}{3})+(?!\p{Nd})")
_CLITIC = regex.compile(r"'(?:s|d|m|re|ve|ll)(?!\w)", regex.IGNORECASE)
_NEGATION = regex.compile(r"(?<=n)'(?=t(?!\w))", regex.IGNORECASE)
_OUTER_JOINERS = regex.compile(r"[/\\:@+~#%=&?]+")
_INNER_JOINERS = regex.compile(r"([-._']+)")
_CAMEL = regex.compile(
    r"(?V1)(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}(?!s(?!\p{L}))\p{Ll})|(?<=\p{Nd})(?=\p{Lu}\p{Ll})"
)
_UUID = regex.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", regex.IGNORECASE)
_VERSION = regex.compile(r"v[0-9]+(?:\.[0-9]+)+")
_CHARACTER = regex.compile(r"\P{M}\p{M}*|\p{M}+")
_WORDLIKE_CHARACTER = regex.compile(r"[\p{Han}\p{Hangul}]")
_IGNORABLE = regex.compile(r"(?V1)[\p{Default_Ignorable_Code_Point}--\u200b]")
_ACCENT = regex.compile(r"([\p{Latin}\p{Greek}])\p{M}+")
_OPTIONAL_MARK = regex.compile(r"[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0670\u06d6-\u06ed\u20dd-\u20e4]")
_ALEF = regex.compile(r"\u0627[\u0653-\u0655]+")
_SAFE = regex.compile(r"[\p{L}\p{M}\p{N}_.\u2e80-\u2fdf]+")
"""Words, radicals of Chinese characters among them: nothing that Lucene takes for its own."""
_DIGIT = regex.compile(r"(?V1)[\p{Nd}--[0-9]]")
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŧ": "t", "ё": "е"}  # noqa: RUF001 - Cyrillic is meant
)
_APOSTROPHES = str.maketrans("‘’ʼ＇", "''''")  # noqa: RUF001 - these signs are meant

_SENTENCE_END = regex.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s++(?!\p{Ll}))|[。！？｡]+[」』”’）)]*|[\r\n\x85\u2028\u2029]+"  # noqa: RUF001 - these signs are meant
)
_UNIT = regex.compile(rf"(?V1)(?P<character>{_NO_BLANKS}[\p{{M}}ﾞﾟ]*)|[[\S]--{_NO_BLANKS}]+")
_RUN = regex.compile(r"[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+")

_CACHED_LENGTH = 48


class _Term(NamedTuple):
    word: str
    telling: int


# How much a term tells of what is asked for.
_IDENTIFIER, _NAME, _PROSE, _STOP, _FRAGMENT = 3, 2, 1, 0, -1

_FUNCTION_WORDS = (
    # articles, pronouns, question words
    "a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself yourselves "
    "he him his himself she her hers herself it its itself they them their theirs themselves one "
    "who whom whose which what when where why how "
    # auxiliary verbs
    "am is are was were be been being do does did doing done have has had having "
    "can could might must shall should will would ought "
    "dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt hasnt havent hadnt mustnt "
    # conjunctions, prepositions, particles
    "and or but nor if then else than as so because while until although though whether "
    "of at by for with about against between into through during before after above below to from up down in out on "
    "off over under within without upon toward towards onto via "
    "again further once here there all any both each few more most other others some such no not only own same too "
    "very just also ever yet still"
)
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_OPERATORS = frozenset({"and", "or", "not"})


def words(text: str) -> list[str]:
    """The words of any text in its order, repetitions kept; each at most `LONGEST_WORD` characters."""
    return [term.word for chunk in text.split() for term in _terms(chunk)]


def index_text(text: str, prefix: str) -> str:
    """What is indexed for a text: its words, each as `<prefix>_<word>`, joined by one blank.

    Repetitions are kept, as BM25 counts them. Raises ValueError unless the prefix is ASCII letters and digits.
    """
    _check_prefix(prefix)
    return " ".join([f"{prefix}_{word}" for word in words(text)])


def query_words(query: str, most: int = 64) -> list[str]:
    """The distinct words to ask for, in the query's order; empty for a text of signs alone.

    Stop words are left out unless there is nothing else. Of more than `most` words the most telling are kept:
    identifiers, numbers and acronyms before capitalised words before others, then the longer before the shorter, then
    the earlier before the later.
    """
    # Where everything is a capital, capitals tell nothing.
    asked = query.lower() if query == query.upper() else query
    telling: dict[str, int] = {}
    for chunk in asked.split():
        for word, rank in _terms(chunk):
            if rank > telling.get(word, _FRAGMENT):
                telling[word] = rank
    chosen = [word for word, rank in telling.items() if rank > _STOP] or list(telling)
    if len(chosen) > most:
        best = sorted(chosen, key=lambda word: (-telling[word], -len(word)))[: max(most, 0)]
        kept = frozenset(best)
        chosen = [word for word in chosen if word in kept]
    return chosen


def keywords(text: str, most: int) -> list[str]:
    """The words that a text is about, as it first writes them, in small letters.

    First those whose forms it repeats most, then identifiers and acronyms before others, the longer before the shorter,
    the earlier before the later: capitals alone, as at the start of a sentence, tell nothing here. Stop words, single
    characters, numbers, and words longer than `LONGEST_WORD` are left out.
    """
    found: dict[str, _Written] = {}
    for chunk in text.split():
        for piece in _PIECE.finditer(_normalized(chunk)):
            for surface, term in _written(piece):
                if term.telling > _STOP and 1 < len(surface) <= LONGEST_WORD and any(map(str.isalpha, surface)):
                    known = found.get(term.word, _Written(surface.lower(), 0, term.telling))
                    found[term.word] = _Written(known.surface, known.times + 1, max(known.telling, term.telling))
    best = sorted(found.values(), key=lambda word: (-word.times, word.telling < _IDENTIFIER, -len(word.surface)))
    return [word.surface for word in best[: max(most, 0)]]


def keyword_query(words: Sequence[str], prefixes: Sequence[str]) -> str:
    """The Lucene query for any of the words under any of the prefixes: `17m_invoice 17f_invoice …`.

    It has at most `MOST_CLAUSES` clauses, the first words' before the later ones'. It is empty where there is nothing
    to ask for; Lucene refuses that, so the caller leaves the keyword arm out. Raises ValueError for what isn't a word
    of this module, or a prefix that isn't ASCII letters and digits.
    """
    for prefix in prefixes:
        _check_prefix(prefix)
    for word in words:
        if not _SAFE.fullmatch(word):
            raise ValueError(f"not a word of the index: {word!r}")
    return " ".join(islice((f"{prefix}_{word}" for word in words for prefix in prefixes), MOST_CLAUSES))


def highlights(text: str, query_words: Sequence[str], most: int = 3, around: int = 240) -> list[str]:
    """The passages of a text that hold most of the words asked for, verbatim (but for NFC), in the text's order.

    A passage is the sentence, or of a sentence longer than `around` characters a window of at most that length,
    cut between words. At most `most` passages, none twice; more distinct words come before more occurrences.
    """
    asked = frozenset(query_words)
    passages: dict[str, _Passage] = {}
    if most < 1 or around < 1 or not asked:
        return []
    if not is_normalized("NFC", text):
        text = normalize("NFC", text)
    for start, end in _sentences(text):
        for passage in _passages(text, start, end, asked, around):
            passages.setdefault(text[passage.start : passage.end], passage)
    best = sorted(passages.items(), key=lambda item: (-item[1].distinct, -item[1].total, item[1].start))[:most]
    return [fragment for fragment, _ in sorted(best, key=lambda item: item[1].start)]


class _Written(NamedTuple):
    """A word as a text writes it, how often it does, and how much it tells."""

    surface: str
    times: int
    telling: int


def _written(piece: "regex.Match[str]") -> Iterator[tuple[str, _Term]]:
    """The terms of a piece that stand for something written: of joined words the whole, of other scripts the pairs."""
    match piece.lastgroup:
        case "chain":
            if term := next(_chain_terms(piece[0]), None):
                yield piece[0], term
        case "pairs":
            yield from ((term.word, term) for term in _pair_terms(piece[0]))


class _Passage(NamedTuple):
    start: int
    end: int
    distinct: int
    total: int


class _Hit(NamedTuple):
    start: int
    end: int
    found: AbstractSet[str]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(mark.end() for mark in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if stripped := sentence.strip():
            first = start + len(sentence) - len(sentence.lstrip())
            yield first, first + len(stripped)
        start = end


def _passages(text: str, start: int, end: int, asked: AbstractSet[str], around: int) -> Iterator[_Passage]:
    if end - start <= around:
        found = [word for word in words(text[start:end]) if word in asked]
        if found:
            yield _Passage(start, end, len(set(found)), len(found))
        return
    units, hits = _located(text, start, end, asked, around)
    starts, ends = [unit[0] for unit in units], [unit[1] for unit in units]
    taken, i = start, 0
    while i < len(hits):
        floor = min(taken, hits[i].start)
        last = i
        while last + 1 < len(hits) and hits[last + 1].end - hits[i].start <= around:
            last += 1
        # what room is left goes to both sides, and to the left alone at the sentence's end
        room = around - (hits[last].end - hits[i].start)
        left = starts[bisect_left(starts, max(floor, hits[i].start - room // 2))]
        right = ends[bisect_right(ends, left + around) - 1]
        left = starts[bisect_left(starts, max(floor, right - around))]
        while last + 1 < len(hits) and hits[last + 1].end <= right:
            last += 1
        inside = hits[i : last + 1]
        yield _Passage(left, right, len(set[str]().union(*(hit.found for hit in inside))), len(inside))
        taken, i = right, last + 1


def _located(
    text: str, start: int, end: int, asked: AbstractSet[str], around: int
) -> tuple[list[tuple[int, int]], list[_Hit]]:
    """The units between which a long sentence may be cut, and where in it the words asked for are."""
    units: list[tuple[int, int]] = []
    hits: list[_Hit] = []
    before = ""
    for unit in _UNIT.finditer(text, start, end):
        first, after = unit.span()
        if unit["character"] and after - first <= around:
            character = _character(unit[0])
            if before and units[-1][1] == first and before + character in asked:
                hits.append(_Hit(units[-1][0], min(after, units[-1][0] + around), {before + character}))
            elif character in asked:
                hits.append(_Hit(first, min(after, first + around), {character}))
            units.append((first, after))
            before = character
            continue
        before = ""
        found = asked & set(words(unit[0]))
        if after - first <= around:
            units.append((first, after))
            if found:
                hits.append(_Hit(first, after, found))
            continue
        runs = [
            (at, min(at + around, run.end()))
            for run in _RUN.finditer(text, first, after)
            for at in range(run.start(), run.end(), around)
        ]
        units.extend(runs)
        inside = [_Hit(*run, here) for run in runs if (here := found & set(words(text[slice(*run)])))]
        hits.extend(inside or ([_Hit(*runs[0], found)] if found else []))
    return units, hits


@lru_cache(maxsize=2**13)
def _character(character: str) -> str:
    return _fold(normalize("NFKC", character))


def _check_prefix(prefix: str) -> None:
    if not (prefix.isascii() and prefix.isalnum()):
        raise ValueError(f"a prefix is ASCII letters and digits, got {prefix!r}")


def _terms(chunk: str) -> tuple[_Term, ...]:
    """The terms of a chunk, the run of characters between two blanks."""
    return _cached_terms(chunk) if len(chunk) <= _CACHED_LENGTH else tuple(_analysed(chunk))


@lru_cache(maxsize=2**15)
def _cached_terms(chunk: str) -> tuple[_Term, ...]:
    return tuple(_analysed(chunk))


def _normalized(chunk: str) -> str:
    """A chunk as its pieces are found in it: NFKC, plain apostrophes, numbers in one, clitics cut off."""
    if not chunk.isascii():
        chunk = normalize("NFKC", chunk)
        if _IGNORABLE.search(chunk):
            chunk = normalize("NFKC", _IGNORABLE.sub("", chunk))
        chunk = chunk.translate(_APOSTROPHES)
    if "," in chunk:
        chunk = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), chunk)
    if "'" in chunk:
        chunk = _NEGATION.sub("", _CLITIC.sub("", chunk))
    return chunk


def _analysed(chunk: str) -> Iterator[_Term]:
    chunk = _normalized(chunk)
    for piece in _PIECE.finditer(chunk):
        match piece.lastgroup:
            case "chain":
                yield from _chain_terms(piece[0])
            case "pairs":
                yield from _pair_terms(piece[0])
            case _:
                yield _Term("".join(f"_{ord(sign):x}" for sign in piece[0]), _NAME)
    if "+" in chunk or "#" in chunk:
        # C++ and C#, whose letters alone tell little
        for name, signs in _SIGNED.findall(chunk):
            if folded := _fold(name).strip("_"):
                yield _Term(f"{folded}_{signs.encode().hex()}", _IDENTIFIER)


def _chain_terms(chain: str) -> Iterator[_Term]:
    """Of words joined by signs (`ann.lee@example.com`, `src/user_names.py`): the whole, then each segment's terms."""
    segments = _OUTER_JOINERS.split(chain)
    if len(segments) > 1:
        wholes = [whole for segment in segments if (whole := _joined(segment))]
        if len(wholes) > 1:
            yield _Term(_bounded("_".join(wholes)), _IDENTIFIER)
    for segment in segments:
        yield from _segment_terms(segment)


def _segment_terms(segment: str) -> Iterator[_Term]:
    parts = [part for piece in _INNER_JOINERS.split(segment)[::2] if piece for part in _CAMEL.split(piece)]
    if len(parts) == 1:
        surface = parts[0]
        folded = _fold(surface)
        if folded:
            yield _Term(_stemmed(folded), _telling(surface, folded))
        return
    if whole := _stemmed(_joined(segment)):
        yield _Term(whole, _IDENTIFIER)
        if _VERSION.fullmatch(whole):
            yield _Term(whole[1:], _IDENTIFIER)
    for part in parts:
        if folded := _fold(part):
            yield _Term(_stemmed(folded), _STOP if folded in _STOP_WORDS else _PROSE)


def _joined(segment: str) -> str:
    """A segment without its joiners, which stay between digits only: user-names → usernames, 1.2.3 → 1.2.3.

    So snake_case, kebab-case, camelCase and a name written together are one word, while 1.23 and 12.3 stay two.
    """
    if _UUID.fullmatch(segment):
        return segment.replace("-", "").lower()
    pieces = _INNER_JOINERS.split(segment)
    joined = _fold(pieces[0])
    for joiner, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        folded = _fold(piece)
        if joined[-1:].isdigit() and folded[:1].isdigit():
            joined += "." if "." in joiner else "_"
        joined += folded
    return joined


def _pair_terms(run: str) -> Iterator[_Term]:
    """Pairs of neighbouring characters, and single ones where such a character can be a word.

    Single characters out of a longer run are indexed, to be found by a query of that character, but not asked for.
    """
    # some fold to more than letters, such as the one for a letter between brackets
    characters = [character for character in _CHARACTER.findall(_fold(run)) if _SAFE.fullmatch(character)]
    if len(characters) == 1:
        yield _Term(_bounded(characters[0]), _PROSE)
        return
    for i, character in enumerate(characters):
        if _WORDLIKE_CHARACTER.match(character):
            yield _Term(_bounded(character), _FRAGMENT)
        if i + 1 < len(characters):
            yield _Term(_bounded(character + characters[i + 1]), _PROSE)


def _telling(surface: str, folded: str) -> int:
    if folded in _STOP_WORDS:
        # US, IT and WHO are no pronouns
        acronym = len(surface) > 1 and surface.isupper() and folded not in _OPERATORS
        return _IDENTIFIER if acronym else _STOP
    if (len(surface) > 1 and surface.isupper()) or any(map(str.isdigit, folded)):
        return _IDENTIFIER
    return _NAME if surface[0].isupper() else _PROSE


def _fold(word: str) -> str:
    """Casefolded, without the accents and optional marks of Latin, Greek, Hebrew and Arabic, digits as 0 to 9.

    Marks of other scripts stay, as they make other letters there (か and が, и and й). Of marks alone nothing is left.
    """
    folded = word.casefold()
    if folded.isascii():
        return folded
    folded = _ACCENT.sub(r"\1", normalize("NFKD", folded))
    folded = _ALEF.sub("\u0627", _OPTIONAL_MARK.sub("", folded))
    folded = normalize("NFC", folded).translate(_LETTERS)
    if not any(map(str.isalnum, folded)):
        return ""
    # those of scripts that this Python doesn't know yet stay as they are
    return _DIGIT.sub(lambda match: str(digit(match[0], match[0])), folded)


def _stemmed(word: str) -> str:
    if len(word) > LONGEST_WORD:
        return _bounded(word)
    return _stem(word) if word.isascii() and word.isalpha() else word


def _bounded(word: str) -> str:
    if len(word) <= LONGEST_WORD:
        return word
    hashed = blake2b(word.encode(), digest_size=16).hexdigest()
    return f"{word[: LONGEST_WORD - len(hashed) - 1]}_{hashed}"


_stemmer = EnglishStemmer()
_stemmer_lock = Lock()


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    # A stemmer keeps the word that it works on in itself.
    with _stemmer_lock:
        stem: str = _stemmer.stemWord(word)
    return stem
