"""What a memory names and states, by fixed rules of English: little, and only what shows in its letters."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import normalize

from reverie.ai.sentences import Sentence, sentences, word_set
from reverie.domain.entities import EntityType
from reverie.domain.extraction import MemoryReading, cleaned_memory_reading
from reverie.domain.facts import FactDraft
from reverie.domain.names import normal_form
from reverie.domain.secrets import HIDDEN, masked

_SURE = 0.7
_MOST_TOPICS = 5
_MOST_SINGLE_TOPICS = 3
_FEWEST_LETTERS = 4
_LONGEST_NAME = 4
"""Words of a capitalised name; a longer run of capitals is a heading."""

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://\S+|\bwww\.\S+|[\w.+-]{1,64}@[\w.-]{1,255}", re.IGNORECASE)
_CAPITAL = r"(?:[A-Z][\w'’]*[\w](?:-[A-Z]\w+)?)"  # noqa: RUF001 - both apostrophes are meant
_NAME = re.compile(rf"\b{_CAPITAL}(?:[ \t]+(?:(?:of|de|van|von|der|la|del)[ \t]+)?{_CAPITAL})+")
_CODE = re.compile(
    r"(?<![\w./@-])(?:"
    r"(?P<camel>[a-z][a-z0-9]{0,40}(?:[A-Z][a-z0-9]{1,40}){1,9}|(?:[A-Z][a-z0-9]{1,40}){2,9})"
    r"|(?P<dotted>[A-Za-z_]\w{0,60}(?:\.[a-z_]\w{0,60}){1,9})"
    r"|(?P<snake>[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,9}|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,9})"
    r"|(?P<kebab>[a-z][a-z0-9]{0,40}(?:-[a-z0-9]{1,40}){1,9})"
    r")(?![\w@/-]|\.\w)"
)
_TICKED = re.compile(r"`([^`\n]{2,60})`")
_CODE_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_TECHNICAL_PARTS = word_set(
    "api app cli db sdk service server client lib js ts py ui web worker core driver plugin proxy gateway backend "
    "frontend repo sql http queue cache auth config cron job bot"
)
_ORDINARY_DOTTED = frozenset(("e.g", "i.e", "a.m", "p.m", "etc"))
_OPENERS = word_set(
    "near under over around through between about into onto "
    "the a an in on at when if while after before since for from with without my our your his her their its i we "
    "he she they it this that these those and but or so then as to of by yes no not all some every each both "
    "during also there here what who where why how because although please today yesterday tomorrow monday "
    "tuesday wednesday thursday friday saturday sunday last next dear hi hello thanks note"
)
_TITLES = frozenset(("mr", "mrs", "ms", "dr", "prof"))
_ORGANISATIONS = word_set(
    "inc ltd llc gmbh ag corp corporation company university institute college school bank foundation association "
    "agency group labs team department ministry society club hospital"
)
_PLACES = word_set(
    "street avenue road square river lake mountain mountains island islands park city county valley bay beach "
    "airport station"
)
_BY_A_PERSON = re.compile(
    r"\s+(?:said|says|told|tells|asked|asks|wrote|writes|joins|joined|works|worked|lives|lived|likes|loves|prefers|thinks"
    r"|called|emailed|met|left|wants|who|and (?:i|he|she))\b",
    re.IGNORECASE,
)
_TO_A_PERSON = re.compile(
    r"\b(?:met|meet|meeting|asked|ask|told|tell|called|call|emailed|email|with|colleague|friend|boss|manager|brother"
    r"|sister|wife|husband|partner|mr\.?|mrs\.?|ms\.?|dr\.?|prof\.?|talked to|spoke to|wrote to)\s+\Z",
    re.IGNORECASE,
)
_NEARBY = 24
"""Characters around a name in which its kind shows."""

_WORD = re.compile(r"[^\W\d_][^\W\d_'’-]*(?:[-'’][^\W\d_]+)*")  # noqa: RUF001 - both apostrophes are meant
_NOUN_ENDING = re.compile(
    r"(?:tion|sion|ment|ness|ity|ship|ance|ence|ism|logy|graphy|hood|ware|ture|age|base|ing|ings|tions|ments|ities)\Z"
)
_BEFORE_A_NOUN = word_set(
    "the a an my our your his her their its this these those of for about on in with from into via per each "
    "every no new old using"
)
_NO_TOPIC = word_set(
    "three four five seven eight nine half second third fourth fifth single native alone "
    "about above after again against almost along already also although always among another anyone anything "
    "around because been before being below between both cannot come comes could does doing done down during each "
    "either else even ever every everyone everything first from further gave getting gets give gives goes going "
    "gone have having here hers herself himself however into itself just keep keeps kept know known knows last "
    "least less like liked likes look looks made make makes making many maybe more most much must myself need "
    "needed needs neither never next none nothing often once only other others ours over perhaps please prefer "
    "preferred prefers rather really said same says several shall should since some someone something soon still "
    "such sure take taken takes than that their them themselves then there these they thing things think this "
    "those though through today together told tomorrow toward under until upon used user uses using very want "
    "wanted wants well went were what whatever when where whether which while whom whose will with within without "
    "work worked working works would year years yesterday your yours yourself week weeks month months time times "
    "days good better best great little long short large small high able back away asked call called kind sort "
    "lots quite seem seems seemed instead decided agreed moved started stopped finished shows show found find "
    "tried trying start"
)

_SUBJECT = r"(?P<subject>(?:the +|our +|my +)?[\w`][\w`'.+#/-]*(?: +[\w`][\w`'.+#/-]*){0,4}?)"
_OBJECT = r"(?P<object>\S.*)"
_FACTS: tuple[tuple[str, re.Pattern[str], EntityType | None, EntityType | None], ...] = tuple(
    (predicate, re.compile(rf"{_SUBJECT} +{verb} +{_OBJECT}", re.IGNORECASE | re.DOTALL), subject, obj)
    for predicate, verb, subject, obj in (
        ("depends on", r"(?:directly +|also +|now +)?depends? +on", None, None),
        ("is written in", r"(?:is|are|was) +written +in", None, EntityType.TOOL),
        ("runs on", r"(?:now +|also +)?runs? +on", None, None),
        ("works at", r"(?:now +|currently +)?works? +(?:at|for)", EntityType.PERSON, EntityType.ORGANIZATION),
        ("works on", r"(?:now +|currently +)?works? +on", EntityType.PERSON, None),
        ("lives in", r"(?:now +|currently +)?lives +in", EntityType.PERSON, EntityType.PLACE),
        ("belongs to", r"belongs? +to", None, None),
        ("requires", r"(?:also +|now +)?requires?", None, None),
        ("replaces", r"(?:has +)?replace[sd]", None, None),
        ("uses", r"(?:now +|also +|currently +)?uses", None, None),
        ("is a", r"(?:is|are) +(?:an?)(?= )", None, None),
    )
)
_OBJECT_END = re.compile(
    r"[,;:(]|[.!?…]+\Z| - | [\u2013\u2014] |\s(?:and|but|because|since|so|which|that|who|where|when|while|until"
    r"|although|for|to|with|as|instead|in order|via|through|after|before)\b",
    re.IGNORECASE,
)
_LONGEST_OBJECT = 6
_PRONOUN = re.compile(
    r"(?:i|we|you|he|she|it|they|this|that|these|those|there|here|what|who|which|one|everyone|nobody|someone|if|when"
    r"|while|because|since|although|and|or|but|so|maybe|perhaps|not|no|never|only|to|for|in|on|at|with)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:if|unless|maybe|perhaps|would|could|might|should|whether|not|n't|never|no longer|said|says|claims|thinks"
    r"|used to|supposedly|allegedly)\b|n't\b",
    re.IGNORECASE,
)


def read_memory(content: str, known_entities: Sequence[tuple[str, EntityType]]) -> MemoryReading:
    """Names, topics and facts of a memory.

    Entities are the known ones that it names, names of two to four capitalised words, code words, and the ends of
    facts whose verb tells what they are. Topics are the words that it repeats, else a few that stand as nouns do.
    """
    # composed, so that no name ends between a letter and its accent
    text = _ADDRESS.sub(" ", normalize("NFKC", masked(content)))
    own = list(sentences(text))
    entities = list(_known(text, known_entities))
    entities += _code_words(text)
    named = [(name, kind) for sentence in own for name, kind in _capitalised(sentence)]
    facts: list[FactDraft] = []
    for sentence in own:
        for fact, kinds in _facts(sentence):
            facts.append(fact)
            entities += kinds
    entities = _one_kind_each([*entities, *named], {normal_form(name): kind for name, kind in known_entities})
    return cleaned_memory_reading(MemoryReading(tuple(_topics(own, entities)), tuple(entities), tuple(facts)))


def _one_kind_each(
    entities: Sequence[tuple[str, EntityType]], known: dict[str, EntityType]
) -> list[tuple[str, EntityType]]:
    """Each name once: with the kind that it is known by, else the first that was found."""
    found: dict[str, tuple[str, EntityType]] = {}
    for name, kind in entities:
        form = normal_form(name)
        found.setdefault(form, (name, known.get(form, kind)))
    return list(found.values())


def _known(text: str, known: Sequence[tuple[str, EntityType]]) -> Iterator[tuple[str, EntityType]]:
    form = normal_form(text)
    for name, kind in known:
        wanted = normal_form(name)
        start = form.find(wanted) if wanted else -1
        while start >= 0:
            end = start + len(wanted)
            if not (form[start - 1 : start].isalnum() and wanted[0].isalnum()) and not (
                form[end : end + 1].isalnum() and wanted[-1].isalnum()
            ):
                yield name, kind
                break
            start = form.find(wanted, start + 1)


def _code_words(text: str) -> Iterator[tuple[str, EntityType]]:
    for ticked in _TICKED.finditer(text):
        word = ticked[1].removesuffix("()")
        if _CODE_WORD.fullmatch(word) and not word.isalpha():
            yield word, EntityType.TOOL if "-" in word else EntityType.CONCEPT
    for match in _CODE.finditer(text):
        word = match[0]
        if match["kebab"]:
            parts = word.split("-")
            if any(part in _TECHNICAL_PARTS for part in parts) or any(map(str.isdigit, word)):
                yield word, EntityType.TOOL
        elif match["dotted"]:
            if word.casefold() not in _ORDINARY_DOTTED and min(map(len, word.split("."))) > 1:
                yield word, EntityType.CONCEPT
        else:
            yield word, EntityType.CONCEPT


def _capitalised(sentence: Sentence) -> Iterator[tuple[str, EntityType]]:
    for match in _NAME.finditer(sentence.text):
        words = match[0].split()
        start = match.start()
        while words and words[0].casefold() in _OPENERS:
            start += len(words[0]) + 1
            words.pop(0)
        if not 1 < len(words) <= _LONGEST_NAME:
            continue
        before = sentence.plain[max(0, start - _NEARBY) : start]
        after = sentence.plain[match.end() : match.end() + _NEARBY]
        yield " ".join(words), _kind_of(words, before, after)


def _kind_of(words: list[str], before: str, after: str) -> EntityType:
    last = words[-1].casefold()
    if last in _ORGANISATIONS or words[0].casefold() in ("university", "bank", "institute", "ministry"):
        return EntityType.ORGANIZATION
    if last in _PLACES or words[0].casefold() in ("lake", "mount"):
        return EntityType.PLACE
    if "project" in (last, words[0].casefold()):
        return EntityType.PROJECT
    if words[0].casefold() in _TITLES or _TO_A_PERSON.search(before) or _BY_A_PERSON.match(after):
        return EntityType.PERSON
    return EntityType.CONCEPT


def _topics(own: Sequence[Sentence], entities: Sequence[tuple[str, EntityType]]) -> list[str]:
    named = {word for name, _ in entities for word in normal_form(name).split()}
    counts: Counter[str] = Counter()
    nouns: dict[str, None] = {}
    for sentence in own:
        previous = ""
        for match in _WORD.finditer(sentence.plain.replace(HIDDEN, "")):
            word = match[0].casefold().removesuffix("'s")
            # a capital within a sentence begins a name
            name = match.start() > 0 and match[0][0].isupper()
            fit = len(word) >= _FEWEST_LETTERS and word not in _NO_TOPIC and word not in named and word.isascii()
            if fit and not name and not word.endswith("ly") and "'" not in word:
                counts[word] += 1
                if previous in _BEFORE_A_NOUN or _NOUN_ENDING.search(word):
                    nouns.setdefault(word)
            previous = match[0].casefold()
    repeated = [word for word, count in counts.most_common() if count > 1]
    return repeated[:_MOST_TOPICS] or list(nouns)[:_MOST_SINGLE_TOPICS]


def _facts(sentence: Sentence) -> Iterator[tuple[FactDraft, list[tuple[str, EntityType]]]]:
    if sentence.asks or _UNREAL.search(sentence.plain):
        return
    for predicate, pattern, subject_kind, object_kind in _FACTS:
        match = pattern.match(sentence.plain)
        if match is None:
            continue
        subject, obj = _phrase(match["subject"]), _phrase(_object(match["object"]))
        if not subject or not obj or _PRONOUN.match(subject) or _PRONOUN.match(obj):
            return
        if len(obj.split()) > _LONGEST_OBJECT:
            return
        entities = [
            (name, kind)
            for name, kind in ((subject, subject_kind), (obj, object_kind))
            if kind is not None and name[0].isupper()
        ]
        is_an = predicate == "is a" and obj[0] in "aeiouAEIOU"
        yield FactDraft(subject, "is an" if is_an else predicate, obj, _SURE), entities
        return


def _object(text: str) -> str:
    cut = _OBJECT_END.search(text)
    return text[: cut.start()] if cut else text


def _phrase(text: str) -> str:
    return re.sub(r"\A(?:the|our|my|an?) +(?=\S)", "", text.strip(" .,!?`"), flags=re.IGNORECASE).replace("`", "")
