"""Calls to OpenAI, or to a server compatible with it: retried within a deadline, paused as the provider asks."""

import asyncio
import email.utils
import itertools
import json
import logging
import math
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import openai

from reverie.errors import ConfigurationError

OPENAI_URL = "https://api.openai.com/v1"

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
_LONGEST_ASKED_PAUSE = 600.0
_TRANSIENT = frozenset({408, 409, 429})
_SERVER_ERROR = 500
_KEY = re.compile(r"[!-~]+")
_PLAIN_CODE = re.compile(r"[A-Za-z][\w.-]{0,60}")
# The words of OpenAI, vLLM, text-embeddings-inference, llama.cpp and Ollama for an input over the model's window.
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|(maximum|max) (input|request|sequence) (length|size)|too (long|large)"
    r"|less than \d+ tokens|(exceed|longer|more)\w*\b.{0,60}\btokens?\b|max_tokens_per_request",
    re.IGNORECASE | re.DOTALL,
)
_MAY_BE_TOO_LONG = frozenset({400, 413, 422, 500})

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class ProviderError(Exception):
    """A call that failed for good. Its words never quote the provider's, which may repeat texts or keys.

    `status` is the HTTP status, None where there was no answer; `too_long` says that the model's window was too small
    for an input; `retry_after` is how many seconds the provider asked to be left alone; `param` is the request's field
    that it found wrong.
    """

    def __init__(
        self, message: str, *, status: int | None = None, too_long: bool = False, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.too_long = too_long
        self.param = param
        self.retry_after: float | None = None


class OpenAIClient:
    """A client whose calls are tried again after rate limits, server errors, cut connections and timeouts.

    Where the provider says when to come back (`Retry-After` in seconds or as a date, `retry-after-ms`), every call of
    this client waits until then; otherwise pauses double from half a second, with jitter. A pause that would last
    beyond the call's deadline isn't begun. `timeout` is for one try, `deadline` for all tries of a call, in seconds.

    Raises ConfigurationError for a key or an address with which no request could be made.
    """

    def __init__(
        self, *, api_key: str, base_url: str | None, timeout: float, deadline: float, max_attempts: int
    ) -> None:
        if not _KEY.fullmatch(api_key):
            raise ConfigurationError(
                "The OpenAI API key is empty or has a blank, a line break or a letter outside ASCII."
            )
        self._url = base_url or OPENAI_URL
        self._host = _host_of(self._url)
        self._timeout = timeout
        self._deadline = deadline
        self._max_attempts = max_attempts
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=self._url, timeout=timeout, max_retries=0)
        self._paused_until = 0.0
        self._reason_paused = ""
        self._closed = False

    @property
    def host(self) -> str:
        """The provider's host, for messages: credentials in the URL stay out."""
        return self._host

    async def call(self, request: Callable[[openai.AsyncOpenAI], Awaitable[Answer]]) -> Answer:
        """The answer to one request, which may be sent several times. Raises ProviderError."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._deadline
        for attempt in itertools.count(1):
            if self._closed:
                raise ProviderError(f"the client of {self.host} is closed")
            while self._paused_until > clock():
                if self._paused_until >= end:
                    refusal = ProviderError(
                        f"{self._reason_paused} and asked to be left alone for longer than a call may last"
                    )
                    refusal.retry_after = self._paused_until - clock()
                    raise refusal
                await asyncio.sleep(self._paused_until - clock())
            try:
                async with asyncio.timeout(min(self._timeout, end - clock())):
                    return await request(self._client)
            except (TimeoutError, openai.OpenAIError, json.JSONDecodeError, UnicodeDecodeError) as error:
                fault = self._fault(error)
                asked = fault.retry_after = _asked_pause(error)
                pause = _own_pause(attempt) if asked is None else asked
                if not _is_transient(error) or fault.too_long:
                    raise fault from None
                if asked:
                    self._paused_until = max(self._paused_until, clock() + asked)
                    self._reason_paused = str(fault)
                if attempt >= self._max_attempts or clock() + pause >= end:
                    raise fault from None
                log.info("trying again in %.1f s: %s", pause, fault, extra={"attempt": attempt, "status": fault.status})
                if not asked:
                    await asyncio.sleep(pause)
        raise AssertionError("unreachable: the loop above has no end")

    async def close(self) -> None:
        """Closes the connections; what is under way fails."""
        self._closed = True
        await self._client.close()

    def _fault(self, error: Exception) -> ProviderError:
        if isinstance(error, openai.APIStatusError):
            code = error.code if error.code and _PLAIN_CODE.fullmatch(error.code) else None
            words = f"{error.message} {error.code} {error.body}"
            return ProviderError(
                f"{self.host} answered {error.status_code}" + (f" ({code})" if code else ""),
                status=error.status_code,
                too_long=error.status_code in _MAY_BE_TOO_LONG and _TOO_LONG.search(words) is not None,
                param=error.param if isinstance(error.param, str) and _PLAIN_CODE.fullmatch(error.param) else None,
            )
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return ProviderError(f"{self.host} didn't answer within {self._timeout:g} s")
        if isinstance(error, openai.APIConnectionError):
            return ProviderError(f"the connection to {self.host} failed ({type(error.__cause__).__name__})")
        return ProviderError(f"{self.host} gave an answer that can't be read ({type(error).__name__})")


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.hostname
    except ValueError:
        pass
    raise ConfigurationError("The OpenAI base URL must begin with http:// or https:// and name a host.")


def _is_transient(error: Exception) -> bool:
    if not isinstance(error, openai.APIStatusError):
        return isinstance(error, TimeoutError | openai.APIConnectionError | json.JSONDecodeError | UnicodeDecodeError)
    # The provider's own word, as OpenAI gives it for a used-up quota.
    said = error.response.headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true"
    return error.status_code in _TRANSIENT or error.status_code >= _SERVER_ERROR


def _own_pause(attempt: int) -> float:
    """Seconds before the next try: doubling, each halved at random so that clients spread out."""
    return min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def _asked_pause(error: Exception) -> float | None:
    """Seconds that the provider asked for, with a little jitter on top; None where it didn't ask (RFC 9110, 10.2.3)."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    asked = _number(headers.get("retry-after-ms"))
    seconds = _number(headers.get("retry-after")) if asked is None else asked / 1000
    if seconds is None:
        try:
            seconds = email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    if seconds <= 0:
        return None
    return min(seconds, _LONGEST_ASKED_PAUSE) + random.uniform(0.0, min(0.1 * seconds, 1.0))  # noqa: S311 - no secret


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number
