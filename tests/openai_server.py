"""A real HTTP server that speaks OpenAI's API, with faults on demand: what tests use in place of the paid models.

    with OpenAIServer() as server:
        server.faults.append(rate_limited(retry_after="1"))
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key)

It runs in a thread with an event loop of its own, so that tests may block, and other processes may use it too.
Each endpoint is one function from a request's body to an answer's, named in `OpenAIServer.endpoints`.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import math
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import h11

Body = dict[str, Any]

EMBEDDINGS = "/v1/embeddings"
CHAT = "/v1/chat/completions"
CHAT_MODEL = "gpt-4.1-mini"

DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
MOST_TOKENS = 8192
MOST_TOKENS_OF_A_REQUEST = 300_000
MOST_INPUTS = 2048
_SIGNS_OF_A_WORD = 8


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with one request: first the delay, then whichever of the others is set."""

    delay: float = 0.0
    """Seconds before anything is sent."""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None
    """The answer's body with a status: an object to be sent as JSON, or a text to be sent as it is."""
    edit: Callable[[Body], object] | None = None
    """What becomes of the right answer before it is sent."""
    cut: bool = False
    """The connection is cut before the answer."""
    half: bool = False
    """The connection is cut in the middle of the right answer."""


def rate_limited(**headers: str) -> Fault:
    """429; headers are given with underscores, such as retry_after="1" or retry_after_ms="250"."""
    body = error_body("Rate limit reached for requests.", "rate_limit_exceeded", "rate_limit_error")
    return Fault(status=429, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body)


def failing(status: int = 500, message: str = "The server had an error.", code: str | None = None) -> Fault:
    """An error of that status, with OpenAI's kind of body."""
    return Fault(status=status, body=error_body(message, code))


def slow(seconds: float) -> Fault:
    """The right answer, that many seconds late."""
    return Fault(delay=seconds)


def cut() -> Fault:
    """The connection is cut before the answer."""
    return Fault(cut=True)


def half_body() -> Fault:
    """The connection is cut in the middle of the answer."""
    return Fault(half=True)


def garbage(text: str = '{"object": "list", "data": [{"emb') -> Fault:
    """200 with a body that is no JSON, complete as far as HTTP goes."""
    return Fault(status=200, body=text)


def too_long() -> Fault:
    """What OpenAI answers to an input over the model's window."""
    return failing(400, f"This model's maximum context length is {MOST_TOKENS} tokens, however you requested more.")


def one_vector_less() -> Fault:
    """The answer lacks its last vector."""
    return Fault(edit=lambda answer: answer | {"data": answer["data"][:-1]})


def with_vector(vector: object, place: int = 0) -> Fault:
    """The answer has this in the place of one vector. NaN and Infinity travel as JSON's common extension."""

    def edit(answer: Body) -> object:
        answer["data"][place]["embedding"] = vector
        return answer

    return Fault(edit=edit)


def answering(content: str | None, *, finish: str = "stop", refusal: str | None = None) -> Fault:
    """A chat model's answer with this in the place of its text."""

    def edit(answer: Body) -> object:
        message = {"role": "assistant", "content": content, "refusal": refusal}
        return answer | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}

    return Fault(edit=edit)


def rewording(change: Callable[[str], str], *, finish: str = "stop") -> Fault:
    """A chat model's right answer, its text changed."""

    def edit(answer: Body) -> object:
        choice = answer["choices"][0]
        choice["message"]["content"] = change(choice["message"]["content"])
        choice["finish_reason"] = finish
        return answer

    return Fault(edit=edit)


def refusing() -> Fault:
    """A chat model that declines, in OpenAI's form."""
    return answering(None, refusal="I can't help with that: a secret text.")


def cut_short() -> Fault:
    """Half of a chat model's right answer, which says that it was cut off."""
    return rewording(lambda text: text[: len(text) // 2], finish="length")


@dataclass(frozen=True)
class Call:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Body
    at: float
    """`time.monotonic()` when it was complete."""

    @property
    def inputs(self) -> list[str]:
        """The texts to embed."""
        given = self.body["input"]
        return [given] if isinstance(given, str) else list(given)

    @property
    def said(self) -> str:
        """What a chat model is told, all messages together."""
        return "\n\n".join(message["content"] for message in self.body["messages"])


class OpenAIServer:
    """The server; used as a context manager."""

    def __init__(self, *, api_key: str = "sk-test-key") -> None:
        self.api_key = api_key
        self.base_url = ""
        self.calls: list[Call] = []
        """Every authorised request, in the order of arrival."""
        self.faults: deque[Fault | None] = deque()
        """What happens to the requests that come next, one each; None lets one pass."""
        self.fault_for: Callable[[Call], Fault | None] = lambda _: None
        """What happens to the requests beyond those."""
        self.dimensions = dict(DIMENSIONS)
        """The models there are, and the length of their vectors."""
        self.bytes_per_token = 4.0
        """How texts are counted; the most tokens are what they are for OpenAI's models."""
        self.chat_models = {CHAT_MODEL}
        self.most_characters = 1_000_000
        """The window of the chat models."""
        self.strict_schemas = True
        """Whether chat models know strict JSON schemas, which not every compatible server does."""
        self.endpoints: dict[str, Callable[[Body], Body]] = {EMBEDDINGS: self._embeddings, CHAT: self._chat}
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="openai-server")
        self._started = threading.Event()
        self._arrived = threading.Condition()
        self._stop: Callable[[], object] = lambda: None

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()

    async def until_called(self, times: int = 1) -> None:
        """Waits until that many requests have come; fails after 30 s."""

        def wait() -> bool:
            with self._arrived:
                return self._arrived.wait_for(lambda: len(self.calls) >= times, 30.0)

        assert await asyncio.to_thread(wait), f"{len(self.calls)} of {times} requests came"

    async def _live(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await stopped.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        # Cancelled only when the server stops, which asyncio would report as an error.
        over = (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError)
        with contextlib.suppress(*over), contextlib.closing(writer):
            while request := await _next_request(http, reader):
                fault, status, answer = self._answer(*request)
                if fault:
                    await asyncio.sleep(fault.delay)
                    if fault.cut:
                        writer.transport.abort()
                        return
                text = answer if isinstance(answer, str) else json.dumps(answer)
                content = text.encode()
                headers = {"content-type": "application/json", "content-length": str(len(content)), "x-request-id": "1"}
                headers |= fault.headers if fault else {}
                writer.write(http.send(h11.Response(status_code=status, headers=list(headers.items()))) or b"")
                if fault and fault.half:
                    writer.write(http.send(h11.Data(data=content[: len(content) // 2])) or b"")
                    await writer.drain()
                    return
                writer.write(http.send(h11.Data(data=content)) or b"")
                writer.write(http.send(h11.EndOfMessage()) or b"")
                await writer.drain()
                if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                    return
                http.start_next_cycle()

    def _answer(self, path: str, headers: dict[str, str], content: bytes) -> tuple[Fault | None, int, object]:
        if headers.get("authorization") != f"Bearer {self.api_key}":
            return None, 401, error_body("Incorrect API key provided.", "invalid_api_key")
        if path not in self.endpoints:
            return None, 404, error_body(f"Invalid URL (POST {path})")
        try:
            body = json.loads(content)
            if not isinstance(body, dict):
                raise TypeError
        except (ValueError, TypeError):
            return None, 400, error_body("We could not parse the JSON body of your request.")
        call = Call(path, headers, body, time.monotonic())
        with self._arrived:
            self.calls.append(call)
            self._arrived.notify_all()
        fault = self.faults.popleft() if self.faults else self.fault_for(call)
        if fault and fault.status:
            return fault, fault.status, fault.body
        try:
            answer = self.endpoints[path](body)
        except RefusedError as refusal:
            return fault, refusal.status, refusal.body
        return fault, 200, fault.edit(answer) if fault and fault.edit else answer

    def _embeddings(self, body: Body) -> Body:
        model = body.get("model")
        if model not in self.dimensions:
            raise RefusedError(404, f"The model `{model}` does not exist.", "model_not_found")
        dimensions = body.get("dimensions", self.dimensions[model])
        if "dimensions" in body and "-3-" not in model:
            raise RefusedError(400, "This model does not support specifying dimensions.")
        if type(dimensions) is not int or not 1 <= dimensions <= self.dimensions[model]:
            raise RefusedError(400, f"Invalid value for 'dimensions' = {dimensions}.")
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            raise RefusedError(400, "'$.input' is invalid.")
        if len(texts) > MOST_INPUTS:
            raise RefusedError(400, f"Invalid 'input': array too long, expected at most {MOST_INPUTS}.")
        tokens = [math.ceil(len(text.encode()) / self.bytes_per_token) for text in texts]
        if max(tokens) > MOST_TOKENS:
            raise RefusedError(
                400,
                f"This model's maximum context length is {MOST_TOKENS} tokens, however you requested {max(tokens)} "
                f"tokens ({max(tokens)} in your prompt; 0 for the completion). Please reduce your prompt.",
            )
        if sum(tokens) > MOST_TOKENS_OF_A_REQUEST:
            raise RefusedError(
                400,
                f"Requested {sum(tokens)} tokens, max {MOST_TOKENS_OF_A_REQUEST} tokens per request",
                "max_tokens_per_request",
            )
        encoding = body.get("encoding_format", "float")
        if encoding not in ("float", "base64"):
            raise RefusedError(400, f"Invalid value for 'encoding_format' = {encoding}.")
        vectors = [bag_of_words(text, dimensions) for text in texts]
        return {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": vector if encoding == "float" else _as_base64(vector),
                }
                for index, vector in enumerate(vectors)
            ],
            "model": model,
            "usage": {"prompt_tokens": sum(tokens), "total_tokens": sum(tokens)},
        }

    def _chat(self, body: Body) -> Body:
        model, messages = body.get("model"), body.get("messages")
        if model not in self.chat_models:
            raise RefusedError(404, f"The model `{model}` does not exist.", "model_not_found")
        if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
            raise RefusedError(400, "Invalid value for 'messages'.")
        asked = sum(len(message["content"]) for message in messages)
        if asked > self.most_characters:
            raise RefusedError(400, "This model's maximum context length is exceeded.", "context_length_exceeded")
        self._check_format(body.get("response_format"), messages)
        told = "\n".join(message["content"] for message in messages if message["role"] == "user")
        content = json.dumps(found_in_memory(told) if "<memory-" in told else found_in_episode(told))
        used = {"prompt_tokens": math.ceil(asked / 4), "completion_tokens": math.ceil(len(content) / 4)}
        return {
            "object": "chat.completion",
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, "refusal": None},
                    "finish_reason": "stop",
                }
            ],
            "usage": used | {"total_tokens": sum(used.values())},
        }

    def _check_format(self, wanted: object, messages: list[Body]) -> None:
        match wanted:
            case {"type": "json_object"}:
                if "json" not in messages[0]["content"].lower():
                    raise RefusedError(400, "'messages' must contain the word 'json' in some form.")
            case {"type": "json_schema", "json_schema": {"name": str(), "strict": True, "schema": dict(schema)}}:
                if not self.strict_schemas:
                    raise RefusedError(400, "response_format.type must be text or json_object")
                for part in [schema, *schema.get("$defs", {}).values()]:
                    _check_strict(part)
            case _:
                raise RefusedError(400, "Invalid value for 'response_format'.")


class RefusedError(Exception):
    """A request that an endpoint refuses."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(message, code)


def error_body(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Body:
    """An error in OpenAI's form."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _is_message(message: object) -> bool:
    match message:
        case {"role": "system" | "user" | "assistant", "content": str(content)}:
            return bool(content)
    return False


def _check_strict(schema: Body) -> None:
    """Refuses an object's schema as OpenAI's strict mode does."""
    if schema.get("additionalProperties") is not False or set(schema["required"]) != set(schema["properties"]):
        raise RefusedError(400, "Invalid schema for response_format.", "invalid_schema")


def fenced(told: str, kind: str) -> list[Any]:
    """The JSON values, one a line, of the data that stands between the tags of that kind."""
    match = re.search(rf"^<({kind}-\w+)>\n(.*?)\n</\1>$", told, re.MULTILINE | re.DOTALL)
    return [json.loads(line) for line in match[2].split("\n")] if match else []


_PREFERS = re.compile(
    r"(?P<actually>Actually, )?I prefer (?P<value>[\w ]+?) for (?P<purpose>\w+)(?: now)?", re.IGNORECASE
)
_CALLED = re.compile(r"my name is (?P<value>\w+)", re.IGNORECASE)
_NO_LONGER = re.compile(r"I no longer prefer (?P<value>[\w ]+?) for (?P<purpose>\w+)", re.IGNORECASE)


def found_in_episode(told: str) -> Body:
    """What a good model finds in an episode, by simple rules: "I prefer … for …" and a name."""
    statements = []
    for event in fenced(told, "events"):
        text = event["text"]
        if text.rstrip().endswith("?"):
            continue
        for match in _PREFERS.finditer(text):
            kind = "CORRECT" if match["actually"] else "STATE"
            statements.append(_claim(event, match, f"preference.{match['purpose'].lower()}", kind, "PREFERENCE"))
        for match in _NO_LONGER.finditer(text):
            statements.append(_claim(event, match, f"preference.{match['purpose'].lower()}", "END", "PREFERENCE"))
        for match in _CALLED.finditer(text):
            statements.append(_claim(event, match, "name", "STATE", "FACT"))
    return {
        "statements": statements,
        "summary": f"{len(statements)} things were said.",
        "tags": ["talk"],
        "outcome": "COMPLETED",
    }


def _claim(event: Body, match: re.Match[str], key: str, kind: str, type_: str) -> Body:
    return {
        "event": event["event"],
        "quote": match[0],
        "key": key,
        "value": match["value"],
        "kind": kind,
        "type": type_,
        "domain": "preferences",
        "confidence": 0.9,
        "reason": None,
    }


def found_in_memory(told: str) -> Body:
    """What a good model finds in a memory, by simple rules: capitalised words, and what depends on what."""
    (text,) = fenced(told, "memory")
    known = {one["name"].casefold(): one for one in fenced(told, "known")}
    names = dict.fromkeys(re.findall(r"\b[A-Z]\w+", text))
    return {
        "topics": list(dict.fromkeys(re.findall(r"\b[a-z]{7,}\b", text)))[:3],
        "entities": [known.get(name.casefold(), {"name": name, "type": "TOOL"}) for name in names],
        "facts": [
            {"subject": subject, "predicate": "depends on", "object": obj, "confidence": 0.9}
            for subject, obj in re.findall(r"(\w+) depends on (\w+)", text)
        ],
    }


def bag_of_words(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on the text alone; texts that share words are near each other."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4 * _SIGNS_OF_A_WORD).digest()
        for (number,) in struct.iter_unpack("<i", digest):
            vector[abs(number) % dimensions] += math.copysign(1.0, number)
    length = math.hypot(*vector)
    return [number / length for number in vector]


def _as_base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


async def _next_request(http: h11.Connection, reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """The path, headers and body of the next request; None at the end of the connection."""
    request: h11.Request | None = None
    content = b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            content += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and request:
            headers = {name.decode(): value.decode() for name, value in request.headers}
            return request.target.decode(), headers, content
        else:
            return None
