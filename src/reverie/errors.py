"""What can go wrong, in the words of the domain.

ReverieError
├── Refusal                 the caller asked for something that can't be; nothing was written
│   ├── BadInput            a value that isn't allowed
│   ├── NotFound            a reference that leads nowhere in the caller's tenant
│   ├── Conflict            it contradicts what is stored
│   ├── AlreadyExists       the name is taken; `existing_id` says by whom
│   ├── TooLarge            over a cap
│   ├── Unsupported         this installation can't do it
│   └── CursorExpired       the change log no longer reaches back to a cursor
├── Refusals                several of them, of one request
├── Unauthenticated         no credentials, or unknown ones
├── Unavailable             a service that the request needs doesn't answer; trying again later may help
├── EmbeddingFailed         the embedder answered with an error, or not in time
├── ExtractionFailed        a reader couldn't read an episode or a memory; `retry_after` says when to come back
├── Unreadable              a document can't be read; the message is its `failure`
└── StartupError            the process can't start or go on; the message is one sentence for the terminal
    ├── ConfigurationError  a setting is wrong, or contradicts the store
    ├── LocalNeo4jError     the private Neo4j can't be fetched or started
    └── StoreError          the store was written by a newer version, or can't be used
"""

from collections.abc import Sequence


class ReverieError(Exception):
    """The root of every error that Reverie raises on purpose."""


class Refusal(ReverieError):
    """A request that can't be carried out; `path` leads into the request's input."""

    def __init__(self, message: str, path: Sequence[str | int] = (), existing_id: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = tuple(str(part) for part in path)
        self.existing_id = existing_id


class BadInput(Refusal):
    """A value that isn't allowed."""


class NotFound(Refusal):
    """A reference that leads nowhere in the caller's tenant."""


class Conflict(Refusal):
    """It contradicts what is stored."""


class AlreadyExists(Refusal):
    """The name is taken."""


class TooLarge(Refusal):
    """Over a cap."""


class Unsupported(Refusal):
    """This installation can't do it."""


class CursorExpired(Refusal):
    """The change log no longer reaches back to a cursor, or never had it."""


class Refusals(ReverieError):
    """All that stands against one request."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(f"{'.'.join(refusal.path)}: {refusal.message}" for refusal in refusals))
        self.refusals = tuple(refusals)


class Unauthenticated(ReverieError):
    """No credentials, or unknown ones."""


class Unavailable(ReverieError):
    """A service that the request needs doesn't answer."""


class EmbeddingFailed(ReverieError):
    """The embedder answered with an error, or not in time."""


class ExtractionFailed(ReverieError):
    """A reader couldn't read an episode or a memory.

    The message is for people, and never repeats a key, a text or a provider's words. `retry_after` is how many seconds
    the provider asked to be left alone, None where it didn't ask.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreadable(ReverieError):
    """A document can't be read, for a reason that lies in it. The message is for people, and shows nothing of it."""


class StartupError(ReverieError):
    """The process can't start or go on; the message is one sentence for the terminal."""


class ConfigurationError(StartupError):
    """A setting is wrong, or contradicts the store."""


class LocalNeo4jError(StartupError):
    """The private Neo4j can't be fetched or started."""


class StoreError(StartupError):
    """The store was written by a newer version, or can't be used."""
