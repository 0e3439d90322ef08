"""Links: nothing but public addresses, however they are written or come about, and no more than the limits."""

import asyncio
import gzip
import hashlib
import ssl
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import pytest_asyncio
import trustme
from tests.page_server import PageServer, answer, page_server, redirect

from reverie.domain.documents import HTML, PDF, MediaType
from reverie.errors import BadInput, Refusal, TooLarge, Unsupported
from reverie.intake.links import LinkPolicy, fetch, is_public

HERE = LinkPolicy(networks=(ip_network("127.0.0.1/32"),), seconds=5, bytes_most=100_000, redirects=3)
"""This machine's own address is allowed, and no other that isn't public."""


@pytest_asyncio.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with page_server() as server:
        yield server


FORBIDDEN = [
    "0.0.0.0",  # noqa: S104 - an address like others here
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"]


@pytest.mark.parametrize("text", FORBIDDEN)
def test_what_only_some_can_reach_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_what_anybody_can_reach_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "0",
        "１２７.0.0.1",  # noqa: RUF001 - wide digits are meant
    ],
)
async def test_no_form_of_this_machines_address_is_asked(host: str, pages: PageServer) -> None:
    pages.pages["/"] = answer(b"secret")

    with pytest.raises(BadInput) as refused:
        await fetch(pages.url("/", host), LinkPolicy(seconds=5))

    assert refused.value.path == ("url",)
    assert "public" in refused.value.message or "found" in refused.value.message or "address" in refused.value.message
    assert pages.asked == []


@pytest.mark.parametrize("text", FORBIDDEN)
async def test_a_name_that_leads_there_is_not_asked(text: str, pages: PageServer) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        assert host == "gates.example"
        return ["93.184.215.14", text]

    with pytest.raises(BadInput, match="isn't public"):
        await fetch(pages.url("/", "gates.example"), LinkPolicy(seconds=5), resolve)


@pytest.mark.parametrize("to", ["http://10.0.0.1/", "http://[::1]:{port}/", "//127.0.0.2:{port}/x"])
async def test_a_redirect_there_is_not_followed(to: str, pages: PageServer) -> None:
    pages.pages["/"] = redirect(to.format(port=pages.port))

    with pytest.raises(BadInput, match="isn't public"):
        await fetch(pages.url("/"), HERE)

    assert len(pages.asked) == 1


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "javascript:alert(1)"])
async def test_a_redirect_to_another_scheme_is_not_followed(to: str, pages: PageServer) -> None:
    pages.pages["/"] = redirect(to)

    with pytest.raises(BadInput, match="must begin with http"):
        await fetch(pages.url("/"), HERE)


async def test_an_answer_of_dns_that_changes_changes_nothing(pages: PageServer) -> None:
    # given: a name that is public when it is looked up first, and this machine from then on
    answers = [["93.184.215.14"], ["127.0.0.1"], ["127.0.0.1"]]
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        return answers[len(looked_up) - 1]

    with pytest.raises(BadInput):
        await fetch(pages.url("/", "rebound.example"), LinkPolicy(seconds=2), resolve)

    # then: the address that was checked was connected to, and none was asked for again
    assert looked_up == ["rebound.example"]
    assert pages.asked == []


async def test_each_redirect_is_looked_up_and_checked_anew(pages: PageServer) -> None:
    pages.pages["/"] = redirect("/again")
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        return ["127.0.0.1"] if len(looked_up) == 1 else ["10.0.0.1"]

    with pytest.raises(BadInput, match="isn't public"):
        await fetch(pages.url("/", "moving.example"), HERE, resolve)

    assert looked_up == ["moving.example", "moving.example"]


async def test_a_page_is_fetched_through_redirects(pages: PageServer) -> None:
    body = "<p>Grüße</p>".encode("iso-8859-1")
    pages.pages["/a"] = redirect("/b?c=1#d")
    pages.pages["/b?c=1"] = redirect(pages.url("/%C3%BC"))
    pages.pages["/%C3%BC"] = answer(body, "text/html; charset=ISO-8859-1")

    fetched = await fetch(pages.url("/a"), HERE)

    with fetched.file as file:
        assert file.read() == body
    assert fetched.media_type == MediaType(HTML, "iso-8859-1")
    assert (fetched.size, fetched.hash) == (len(body), hashlib.sha256(body).hexdigest())
    assert "user-agent: reverie" in pages.asked[0].lower()


async def test_https_is_read_from_whom_the_name_was_certified_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: a server with a certificate for one name, by an authority that this machine may trust
    authority = trustme.CA()
    certificates = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(certificates)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("gates.example").configure_cert(tls)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with page_server(tls) as pages:
        pages.pages["/"] = answer(b"<p>green</p>")
        url = f"https://gates.example:{pages.port}/"
        # when, then: it isn't read from while the authority is unknown
        with pytest.raises(BadInput, match="certificate"):
            await fetch(url, HERE, resolve)

        monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
        fetched = await fetch(url, HERE, resolve)
        with fetched.file as file:
            assert file.read() == b"<p>green</p>"

        # and: neither under another name
        with pytest.raises(BadInput, match="certificate"):
            await fetch(f"https://other.example:{pages.port}/", HERE, resolve)
    assert len(pages.asked) == 1


async def test_a_type_that_says_nothing_is_told_by_the_path(pages: PageServer) -> None:
    for content_type in (None, "application/octet-stream"):
        pages.pages["/report.pdf"] = answer(b"%PDF-", content_type)

        fetched = await fetch(pages.url("/report.pdf"), HERE)

        fetched.file.close()
        assert fetched.media_type == MediaType(PDF)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 10_000)
        await writer.drain()


async def dripping_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X-Drip: drop\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def dripping_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 90000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def broken_off(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\nhalf")
    await writer.drain()


async def no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    ("page", "kind", "words"),
    [
        (endless, TooLarge, "more than 100,000 bytes"),
        (answer(b"x" * 100_001), TooLarge, "more than 100,000 bytes"),
        (
            answer(b"", "text/html", X="y").replace(b"Content-Length: 0", b"Content-Length: 2000000000"),
            TooLarge,
            "bytes",
        ),
        (dripping_head, BadInput, "within 1 s"),
        (dripping_body, BadInput, "within 1 s"),
        (broken_off, BadInput, "HTTP"),
        (no_http, BadInput, "HTTP"),
        (answer(b"no", status="403 Forbidden"), BadInput, "status 403"),
        (answer(b"no", status="204 No Content"), BadInput, "status 204"),
        (answer(b"\x89PNG", "image/png"), Unsupported, "'image/png' can't be read"),
        (answer(b"x", None), Unsupported, "can't be read"),
        (answer(gzip.compress(b"x"), Content_Encoding="gzip"), Unsupported, "compressed"),
        (redirect("/page"), BadInput, "more than 3 times"),
        (redirect("http://user:secret@127.0.0.1/"), BadInput, "must not hold a user"),
        (redirect("http://["), BadInput, "is no address"),
    ],
)
async def test_what_is_too_much_or_no_page_is_refused(
    page: "bytes", kind: type[Refusal], words: str, pages: PageServer
) -> None:
    pages.pages["/page"] = page

    async with asyncio.timeout(10):
        with pytest.raises(kind, match=words) as refused:
            await fetch(
                pages.url("/page"), LinkPolicy(networks=HERE.networks, seconds=1, bytes_most=100_000, redirects=3)
            )

    assert refused.value.path == ("url",)


async def test_a_host_that_is_not_there_is_refused() -> None:
    async with page_server() as gone:
        pass
    with pytest.raises(BadInput, match="takes no connection"):
        await fetch(gone.url("/"), HERE)
    with pytest.raises(BadInput, match="can't be found"):
        await fetch("http://nowhere.invalid/", LinkPolicy(seconds=10))
