"""What the commands share: lines for a person, sockets, settings from flags."""

import errno
import socket as sockets
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from reverie.errors import ConfigurationError
from reverie.settings import Settings

if TYPE_CHECKING:
    from reverie.resources import Resources

F = TypeVar("F", bound=Callable[..., Any])


def say(line: str) -> None:
    """A line for a person, on standard error."""
    click.echo(line, err=True)


def embedder_sentence(settings: Settings, resources: "Resources") -> str:
    """What makes the vectors, and whether texts leave this machine for it."""
    if resources.embedder is None:
        return f"Search is by word only: {resources.embedder_note}."
    if resources.embedder.name.startswith("openai:"):
        return f"Vectors come from {_provider(settings)}: the texts of memories, topics and searches are sent there."
    return f"Vectors are made on this machine ({resources.embedder.name}); nothing leaves it."


def extractor_sentence(settings: Settings, resources: "Resources") -> str:
    """What reads episodes and memories, and whether texts leave this machine for it."""
    if resources.extractor.name.startswith("openai:"):
        model = resources.extractor.name.removeprefix("openai:")
        return f"Episodes and memories are read by {model} of {_provider(settings)}: their texts are sent there."
    return "Episodes and memories are read by rules, for plain English statements; nothing leaves this machine."


def _provider(settings: Settings) -> str:
    return urlsplit(settings.openai_base_url).netloc.rpartition("@")[2] if settings.openai_base_url else "OpenAI"


def listen_socket(host: str, port: int) -> sockets.socket:
    """A listening socket; ConfigurationError where the port is taken or the address isn't this machine's."""
    try:
        family, kind, proto, _, address = sockets.getaddrinfo(
            host, port, type=sockets.SOCK_STREAM, flags=sockets.AI_PASSIVE
        )[0]
        listening = sockets.socket(family, kind, proto)
    except OSError as error:
        raise ConfigurationError(f"REVERIE_HOST: {host!r} is no address: {error}") from error
    listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"port {port} of {host} is in use by another program; choose another with --port or REVERIE_PORT"
            ) from error
        raise ConfigurationError(f"{host}:{port} can't be listened on: {error.strerror}") from error
    listening.listen(2048)
    return listening


def options(*names: str) -> Callable[[F], F]:
    """Flags for these settings, each with its variable and default in the help."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            member = next(member for member in fields(Settings) if member.name == name)
            variable, text = member.metadata["variable"], member.metadata["help"]
            default = f"; {member.default}" if member.default not in (None, MISSING) else ""
            help_ = f"{text}  [{variable}{default}]"
            command = click.option(f"--{name.replace('_', '-')}", name, metavar="VALUE", help=help_)(command)
        return command

    return decorate
