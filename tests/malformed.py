"""Requests that are wrong on the wire, in their target or in a header, each with the status that it deserves."""

import gzip
import json
from typing import TypeAlias

__all__ = ["ADMIN", "CUT", "FRAMING", "GOOD", "HEADERS", "TARGETS", "Case", "get", "post"]

ADMIN = "admin-secret"
GOOD = json.dumps({"model": "sonnet", "messages": [{"role": "user", "content": "hi"}]}).encode()
HOST = b"Host: localhost\r\n"
KEY = b"Authorization: Bearer " + ADMIN.encode() + b"\r\n"
OLD = b"POST /v1/chat/completions HTTP/1.0"
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"
H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
Case: TypeAlias = tuple[str, bytes, int]


def post(headers: bytes, body: bytes = b"", line: bytes = b"POST /v1/chat/completions HTTP/1.1") -> bytes:
    return line + b"\r\n" + HOST + KEY + headers + b"\r\n" + body


def get(target: bytes, headers: bytes = b"", method: bytes = b"GET", version: bytes = b"HTTP/1.1") -> bytes:
    return method + b" " + target + b" " + version + b"\r\n" + HOST + KEY + headers + b"\r\n"


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


def chunked(*chunks: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked\r\n", b"".join(chunks))


def whole(body: bytes, headers: bytes = b"") -> bytes:
    return post(length(body) + headers, body)


def with_option(name: bytes, value: bytes) -> bytes:
    return whole(GOOD, name + b": " + value + b"\r\n")


BAD = b'{"model":"sonnet"}'
"""A body that is refused: a framing that works ends in a 400 with a param."""
CHUNK = b"%x\r\n%b\r\n" % (len(BAD), BAD)

FRAMING: list[Case] = [
    # lengths
    ("two lengths that differ", post(b"Content-Length: 18\r\nContent-Length: 19\r\n", BAD), 400),
    ("two lengths alike", post(b"Content-Length: 18\r\nContent-Length: 18\r\n", BAD), 400),
    ("a list of lengths", post(b"Content-Length: 18, 18\r\n", BAD), 400),
    ("a list of lengths that differ", post(b"Content-Length: 18, 19\r\n", BAD), 400),
    ("length negative", post(b"Content-Length: -1\r\n", BAD), 400),
    ("length with a sign", post(b"Content-Length: +18\r\n", BAD), 400),
    ("length no number", post(b"Content-Length: abc\r\n", BAD), 400),
    ("length empty", post(b"Content-Length: \r\n", BAD), 400),
    ("length hexadecimal", post(b"Content-Length: 0x12\r\n", BAD), 400),
    ("length with a fraction", post(b"Content-Length: 18.0\r\n", BAD), 400),
    ("length of 5000 digits", post(b"Content-Length: " + b"9" * 5000 + b"\r\n", BAD), 400),
    ("length beyond the limit", post(b"Content-Length: 99999999999\r\n", BAD), 413),
    ("length in full-width digits", post(b"Content-Length: \xef\xbc\x91\r\n", BAD), 400),
    ("no length", post(b"", BAD), 400),
    # chunks
    ("chunk size no number", chunked(b"zz\r\n"), 400),
    ("chunk size negative", chunked(b"-5\r\nhello\r\n0\r\n\r\n"), 400),
    ("chunk size empty", chunked(b"\r\nhello\r\n"), 400),
    ("chunk size with prefix", chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
    ("chunk size of 30 digits", chunked(b"f" * 30 + b"\r\nhello"), 400),
    ("chunk longer than its size", chunked(b"2\r\nhello\r\n0\r\n\r\n"), 400),
    ("chunk without its end", chunked(b"5\r\nhelloworld\r\n0\r\n\r\n"), 400),
    ("chunk extension", chunked(CHUNK.replace(b"\r\n", b";a=b\r\n", 1), b"0\r\n\r\n"), 400),
    ("chunk extension without end", chunked(b"5;" + b"x" * 20_000), 431),
    ("chunk size line without end", chunked(b"0" * 20_000), 431),
    ("trailer", chunked(CHUNK, b"0\r\nX-Trailer: 1\r\n\r\n"), 400),
    ("trailer of 20 kB", chunked(CHUNK, b"0\r\nX-Trailer: " + b"x" * 20_000 + b"\r\n\r\n"), 400),
    ("trailer malformed", chunked(CHUNK, b"0\r\nno colon\r\n\r\n"), 400),
    # both
    ("encoding and length", post(b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", CHUNK + b"0\r\n\r\n"), 400),
    ("length and encoding", post(b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", CHUNK + b"0\r\n\r\n"), 400),
    ("encoding gzip", post(b"Transfer-Encoding: gzip\r\n", gzip.compress(BAD)), 501),
    ("encoding gzip, chunked", post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNK), 501),
    ("encoding chunked, chunked", post(b"Transfer-Encoding: chunked, chunked\r\n", CHUNK), 501),
    ("encoding twice", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNK), 501),
    ("encoding identity", post(b"Transfer-Encoding: identity\r\n", BAD), 501),
    ("encoding with a vertical tab", post(b"Transfer-Encoding: \x0bchunked\r\n", CHUNK), 400),
    ("encoding in capitals", post(b"Transfer-Encoding: CHUNKED\r\n", CHUNK + b"0\r\n\r\n"), 400),
    ("encoding over HTTP/1.0", post(b"Transfer-Encoding: chunked\r\n", CHUNK + b"0\r\n\r\n", OLD), 400),
    # request line
    ("no request line", b"\r\n\r\nHost: localhost\r\n\r\n", 400),
    ("only a method", b"GET\r\n" + HOST + b"\r\n", 400),
    ("HTTP/0.9", b"GET /health\r\n\r\n", 400),
    ("HTTP/0.9 with version", get(b"/health", version=b"HTTP/0.9"), 505),
    ("HTTP/2.0", get(b"/health", version=b"HTTP/2.0"), 505),
    ("HTTP/1.2", get(b"/health", version=b"HTTP/1.2"), 505),
    ("HTTP/11", get(b"/health", version=b"HTTP/11"), 400),
    ("http/1.1", get(b"/health", version=b"http/1.1"), 400),
    ("FTP/1.1", get(b"/health", version=b"FTP/1.1"), 400),
    ("two spaces", b"GET  /health HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("leading space", b" GET /health HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("tab between", b"GET\t/health\tHTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("space in the target", get(b"/hea lth"), 400),
    ("trailing space", b"GET /health HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    ("NUL in the target", get(b"/hea\0lth"), 400),
    ("control in the target", get(b"/hea\x07lth"), 400),
    ("CR in the target", get(b"/hea\rlth"), 400),
    ("raw UTF-8 in the target", get("/heälth".encode()), 400),
    ("raw 0xff in the target", get(b"/hea\xfflth"), 400),
    ("method with a slash", get(b"/health", method=b"GE/T"), 400),
    ("method not ASCII", get(b"/health", method="GÈT".encode()), 400),
    ("method of 20 kB", get(b"/health", method=b"G" * 20_000), 431),
    ("target of 20 kB", get(b"/" + b"a" * 20_000), 431),
    ("query of 20 kB", get(b"/logs?event=" + b"a" * 20_000), 431),
    # headers
    ("header of 20 kB", get(b"/health", b"X: " + b"x" * 20_000 + b"\r\n"), 431),
    ("header name of 20 kB", get(b"/health", b"x" * 20_000 + b": 1\r\n"), 431),
    ("5000 headers", get(b"/health", b"X: 1\r\n" * 5000), 431),
    ("3000 short headers", get(b"/health", b"a:b\r\n" * 3000), 431),
    ("cookie of 20 kB", get(b"/health", b"Cookie: a=" + b"x" * 20_000 + b"\r\n"), 431),
    ("key of 20 kB", b"GET /health HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + b"x" * 20_000 + b"\r\n\r\n", 431),
    ("header without colon", get(b"/health", b"nonsense\r\n"), 400),
    ("header without name", get(b"/health", b": x\r\n"), 400),
    ("space before the colon", get(b"/health", b"X : x\r\n"), 400),
    ("folded first header", b"GET /health HTTP/1.1\r\n X: a\r\n" + HOST + b"\r\n", 400),
    ("NUL in a header", get(b"/health", b"X: a\0b\r\n"), 400),
    ("CR in a header", get(b"/health", b"X: a\rb\r\n"), 400),
    ("header name not ASCII", get(b"/health", "Xä: a\r\n".encode()), 400),
    ("header name with a brace", get(b"/health", b"X{: a\r\n"), 400),
    ("header name with a NUL", get(b"/health", b"X\0: a\r\n"), 400),
    ("no host", b"GET /health HTTP/1.1\r\n\r\n", 400),
    ("two hosts", get(b"/health", b"Host: localhost\r\n"), 400),
    ("foreign host", b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    ("host of nonsense", b"GET /health HTTP/1.1\r\nHost: [::1\r\n\r\n", 403),
    ("host with a path", b"GET /health HTTP/1.1\r\nHost: localhost/x\r\n\r\n", 403),
    ("host with a user", b"GET /health HTTP/1.1\r\nHost: evil@localhost\r\n\r\n", 403),
    ("host with 0xff", b"GET /health HTTP/1.1\r\nHost: local\xffhost\r\n\r\n", 403),
    ("host with a port that is none", b"GET /health HTTP/1.1\r\nHost: localhost:abc\r\n\r\n", 403),
    # other protocols
    ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(128)) + b"\r\n\r\n", 400),
    ("TLS without a line", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n", 400),
    ("SOCKS 5", b"\x05\x01\x00", 400),
    ("Redis", b"*1\r\n$4\r\nPING\r\n", 400),
    ("SMTP", b"EHLO localhost\r\n", 400),
    ("proxy protocol", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + get(b"/health"), 400),
    ("NULs", bytes(1000), 400),
    ("line feeds", b"\n" * 1000 + get(b"/nothing"), 404),
    ("websocket upgrade", get(b"/v1/chat/completions", WEBSOCKET), 405),
    ("websocket frame behind", get(b"/nothing", WEBSOCKET) + b"\x81\x85\0\0\0\0hello", 404),
    ("h2c upgrade", get(b"/nothing", H2C + b"AAMAAABkAARAAAAAAAIAAAAA\r\n"), 404),
    ("h2c upgrade with a body", post(length(BAD) + H2C + b"!\r\n", BAD), 400),
    ("upgrade to nonsense", get(b"/nothing", b"Connection: Upgrade\r\nUpgrade: nonsense/9\r\n"), 404),
    # expectations
    ("expect 100-continue", whole(BAD, b"Expect: 100-continue\r\n"), 400),
    ("expect 100-continue without a body", get(b"/nothing", b"Expect: 100-continue\r\n"), 404),
    ("expect 100-continue over HTTP/1.0", post(length(BAD) + b"Expect: 100-continue\r\n", BAD, OLD), 400),
    ("expect nonsense", whole(BAD, b"Expect: nonsense\r\n"), 400),
    ("expect, body over the limit", post(b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n"), 413),
    # old
    ("HTTP/1.0", b"GET /nothing HTTP/1.0\r\n\r\n", 401),
    ("HTTP/1.0 keep-alive", b"GET /nothing HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 401),
    ("HTTP/1.0 without a length", b"POST /v1/chat/completions HTTP/1.0\r\n" + KEY + b"\r\n" + BAD, 400),
    ("bare LF", b"GET /nothing HTTP/1.1\nHost: localhost\n\n", 401),
]

TARGETS: list[Case] = [
    ("absolute form", get(b"http://localhost/nothing"), 404),
    ("absolute form of another scheme", get(b"ftp://localhost/health"), 400),
    ("absolute form without a path", get(b"http://localhost"), 404),
    ("authority form", get(b"localhost:80", method=b"CONNECT"), 400),
    ("authority form, GET", get(b"localhost:80"), 400),
    ("asterisk, GET", get(b"*"), 404),
    ("no leading slash", get(b"health"), 400),
    ("slashes too many", get(b"/v1//models"), 404),
    ("slashes too many, administration", get(b"/api//keys"), 404),
    ("double slash and host", get(b"//evil.example/health"), 404),
    ("dots", get(b"/v1/../health"), 404),
    ("encoded dots", get(b"/%2e%2e/%2e%2e/etc/passwd"), 404),
    ("backslashes", get(b"/v1\\models"), 404),
    ("fragment", get(b"/nothing#fragment"), 404),
    ("semicolon", get(b"/health;x=1"), 404),
    ("encoded question mark", get(b"/health%3Fx=1"), 404),
    ("half an escape", get(b"/%"), 404),
    ("bad escape", get(b"/%zz"), 404),
    ("escape cut short", get(b"/%a"), 404),
    ("escape of no UTF-8", get(b"/%ff%fe"), 404),
    ("escape of a NUL", get(b"/health%00"), 404),
    ("escape of a line end", get(b"/health%0d%0aX: 1"), 400),
    ("escape of a line end, alone", get(b"/%0d%0a"), 404),
    ("overlong UTF-8", get(b"/%c0%af"), 404),
    ("escaped surrogate", get(b"/%ed%a0%80"), 404),
    ("doubly escaped", get(b"/%2570"), 404),
    ("model of no UTF-8", get(b"/v1/models/%ff%fe"), 404),
    ("model with a NUL", get(b"/v1/models/%00"), 404),
    ("model bad escape", get(b"/v1/models/%zz"), 404),
    ("model with slashes", get(b"/v1/models/a/b/c"), 404),
    ("model empty", get(b"/v1/models/"), 404),
    ("model of 10 kB", get(b"/v1/models/" + b"a" * 10_000), 404),
    ("key of no UTF-8", get(b"/api/keys/%ff", method=b"DELETE"), 404),
    ("key bad escape", get(b"/api/keys/%zz", method=b"DELETE"), 404),
    ("key NUL", get(b"/api/keys/%00/quota"), 404),
    ("key surrogate", get(b"/api/keys/%ed%a0%80/quota"), 404),
    ("key of 10 kB", get(b"/api/keys/" + b"a" * 10_000, method=b"DELETE"), 404),
    ("key with slashes", get(b"/api/keys/a/b/quota"), 404),
    ("request id of no UTF-8", get(b"/v1/requests/%ff", method=b"DELETE"), 404),
    ("request id with a line end", get(b"/v1/requests/%0d%0a", method=b"DELETE"), 404),
    ("n no number", get(b"/logs?n=abc"), 400),
    ("n negative", get(b"/logs?n=-1"), 400),
    ("n fraction", get(b"/logs?n=1.5"), 400),
    ("n huge", get(b"/logs?n=" + b"9" * 5000), 400),
    ("n 1e400", get(b"/logs?n=1e400"), 400),
    ("n nan", get(b"/logs?n=nan"), 400),
    ("n infinity", get(b"/logs?n=Infinity"), 400),
    ("n empty", get(b"/logs?n="), 400),
    ("n full-width", get(b"/logs?n=%ef%bc%91"), 400),
    ("n bad escape", get(b"/logs?n=%zz"), 400),
    ("n no UTF-8", get(b"/logs?n=%ff"), 400),
    ("n NUL", get(b"/logs?n=%00"), 400),
    ("level unknown", get(b"/logs?level=loud"), 400),
    ("level no UTF-8", get(b"/logs?level=%ff"), 400),
    ("limit no number", get(b"/api/usage?all=true&limit=abc&hours=-1e9"), 400),
    ("limit huge", get(b"/api/usage?all=true&limit=99999999999999999999"), 400),
    ("hours negative", get(b"/api/usage?all=true&hours=-5"), 400),
    ("hours beyond", get(b"/api/usage?all=true&hours=999999999"), 400),
    ("since no date", get(b"/api/usage?all=true&since=yesterday"), 400),
    ("since year 0", get(b"/api/usage?all=true&since=0000-01-01"), 400),
    ("since year 99999", get(b"/api/usage?all=true&since=99999-01-01"), 400),
    ("since NUL", get(b"/api/usage?all=true&since=%00"), 400),
    ("since no UTF-8", get(b"/api/usage?all=true&since=%ff"), 400),
    ("all nonsense", get(b"/api/usage?all=perhaps"), 400),
]

NO_INTERVALS = (
    b"", b"99", b"-1", b"1.5", b"15s", b"9" * 30, b"9" * 5000, b"600001", b"1000, 2000", b"\xff", b"nan", b"1e400"
)  # fmt: skip
NO_FORMATS = (b"", b"ping", b"Comment", b"\xff", b"x" * 10_000)

HEADERS: list[Case] = [
    ("no key", b"GET /logs HTTP/1.1\r\n" + HOST + b"\r\n", 401),
    ("basic", b"GET /logs HTTP/1.1\r\n" + HOST + b"Authorization: Basic YTpi\r\n\r\n", 401),
    ("bearer without a key", b"GET /logs HTTP/1.1\r\n" + HOST + b"Authorization: Bearer\r\n\r\n", 401),
    ("two keys", get(b"/logs", b"X-Api-Key: other\r\n"), 401),
    ("two authorizations", get(b"/logs", b"Authorization: Bearer other\r\n"), 401),
    ("key of other bytes", b"GET /logs HTTP/1.1\r\n" + HOST + b"Authorization: Bearer \xff\xfe\r\n\r\n", 401),
    ("key in UTF-8", b"GET /logs HTTP/1.1\r\n" + HOST + "X-Api-Key: ключ\r\n\r\n".encode(), 401),
    ("key of 10 kB", b"GET /logs HTTP/1.1\r\n" + HOST + b"X-Api-Key: " + b"k" * 10_000 + b"\r\n\r\n", 401),
    ("gzip body", whole(gzip.compress(GOOD), b"Content-Encoding: gzip\r\n"), 400),
    ("gzip bomb", whole(gzip.compress(bytes(2**20)), b"Content-Encoding: gzip\r\n"), 400),
    ("content type form", whole(BAD, b"Content-Type: application/x-www-form-urlencoded\r\n"), 400),
    ("content type multipart without boundary", whole(BAD, b"Content-Type: multipart/form-data\r\n"), 400),
    ("content type nonsense", whole(BAD, b"Content-Type: ;;;=\xff\r\n"), 400),
    ("content type with a charset", whole(BAD, b"Content-Type: application/json; charset=utf-16\r\n"), 400),
    ("cookie nonsense", get(b"/nothing", b"Cookie: \xff=;;=\r\n"), 404),
    ("accept nonsense", get(b"/nothing", b"Accept: \xff;q=nan\r\n"), 404),
    ("range nonsense", get(b"/nothing", b"Range: bytes=-\r\n"), 404),
    ("if-modified nonsense", get(b"/nothing", b"If-Modified-Since: never\r\nIf-None-Match: \xff\r\n"), 404),
    ("forwarded nonsense", get(b"/nothing", b"X-Forwarded-For: \xff\r\nForwarded: =;=\r\n"), 404),
    ("method override", get(b"/nothing", b"X-HTTP-Method-Override: \xff\r\n"), 404),
    *((f"heartbeat {text[:40]!r}", with_option(b"x-ocp-heartbeat", text), 400) for text in NO_INTERVALS),
    ("heartbeat twice", whole(GOOD, b"x-ocp-heartbeat: 1000\r\nx-ocp-heartbeat: 1000\r\n"), 400),
    *((f"format {text[:40]!r}", with_option(b"x-ocp-heartbeat-format", text), 400) for text in NO_FORMATS),
    *((f"reasoning {text!r}", with_option(b"x-ocp-reasoning", text), 400) for text in (b"", b"true", b"2", b"\xff")),
]

CUT: list[Case] = [
    ("in the request line", b"GET /hea", 400),
    ("in the head", b"GET /health HTTP/1.1\r\nHost: lo", 400),
    ("before the body", post(length(GOOD)), 400),
    ("in the body", post(length(GOOD), GOOD[:20]), 400),
    ("in a character of the body", post(b"Content-Length: 100\r\n", b'{"model":"\xe6'), 400),
    ("in a chunk's size", chunked(b"5"), 400),
    ("in a chunk", chunked(b"50\r\nabc"), 400),
    ("before the last chunk", chunked(CHUNK), 400),
    ("in a trailer", chunked(CHUNK, b"0\r\nX: 1"), 400),
]
"""Requests whose client closes its half before it has said all."""
