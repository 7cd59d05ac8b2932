"""docs/hard-cases.md B8: our own HTTP server against what must not be sent to one; limits of the issue's section 3."""

import json
import socket
import threading
import time

import pytest

from harness.wait import Stopwatch, until

HEALTHZ = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def answers(service, text, deadline=60):
    """Status of the first answer to `text`, and whether the connection was closed after it."""
    with service.raw(deadline) as raw:
        raw.send(text)
        answer = raw.answer()
        assert answer is not None, "closed without an answer"
        return answer.status, raw.at_end()


def post(service, session, extra, body="", path="/exec"):
    return (f"POST /sessions/{session.id}{path} HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
            f"Content-Type: application/json\r\n{extra}\r\n{body}")


CHUNKED = "Transfer-Encoding: chunked\r\n"
COMMAND = '{"command":"echo one"}'


@pytest.mark.row("B8-01")
@pytest.mark.parametrize("headers", ["Content-Length: 0\r\n" + CHUNKED, CHUNKED + "Content-Length: 0\r\n",
                                     f"Content-Length: {len(COMMAND)}\r\n" + CHUNKED])
def test_b8_01_both_lengths_are_400_and_close(service, shared, headers):
    smuggled = "0\r\n\r\n" + HEALTHZ
    assert answers(service, post(service, shared, headers, smuggled)) == (400, True)


@pytest.mark.row("B8-01")
@pytest.mark.parametrize("value", ["chunked, chunked", "xchunked", "chunked, identity", "identity", "\x0bchunked"])
def test_b8_01_other_transfer_codings_are_refused(service, shared, value):
    status, closed = answers(service, post(service, shared, f"Transfer-Encoding: {value}\r\n", "0\r\n\r\n" + HEALTHZ))
    assert status in (400, 501)
    assert closed


@pytest.mark.row("B8-03")
@pytest.mark.parametrize("body", ["1;a\n\r\n", "5\n" + HEALTHZ, "5\nhello\r\n0\r\n\r\n", "5;x=\x01\r\nhello\r\n0\r\n\r\n",
                                  "5\r\nhello\n0\r\n\r\n", "5 \r\nhelloX\r\n0\r\n\r\n", "-1\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n",
                                  "0x5\r\nhello\r\n0\r\n\r\n", "g\r\n\r\n", "5\r\nhelloXX0\r\n\r\n", "\r\n\r\n"])
def test_b8_03_chunk_lines_are_strict(service, shared, body):
    assert answers(service, post(service, shared, CHUNKED, body)) == (400, True)


@pytest.mark.row("B8-05")
@pytest.mark.parametrize("size", ["10000000000000000", "FFFFFFFFFFFFFFFF", "10000000000000001", "f" * 40,
                                  "8000000000000000"])
def test_b8_05_a_chunk_size_never_wraps(services, size):
    service = services(max_body_bytes=1 << 20)
    with service.open() as session, service.raw(10) as raw:
        raw.send(post(service, session, CHUNKED, f"{size}\r\n"))
        try:
            for _ in range(32):
                raw.send(b" " * 65536)
        except ConnectionError:
            pass  # refused by the size alone; the answer is there all the same
        assert raw.answer().status in (400, 413)
        assert session.sh("echo alive") == "alive\n"


@pytest.mark.row("B8-05")
def test_b8_05_a_chunk_size_with_endless_zeros_is_400(service, shared):
    assert answers(service, post(service, shared, CHUNKED, "0" * 100_000 + "5\r\nhello\r\n0\r\n\r\n"))[0] in (400, 413, 431)


@pytest.mark.row("B8-05")
def test_b8_05_a_chunked_body_is_read_whole_before_the_next_request(service, shared):
    body = "b\r\n" + COMMAND[:11] + "\r\nb\r\n" + COMMAND[11:] + "\r\n0\r\nX-Trailer: y\r\n\r\n"
    assert len(COMMAND) == 22
    with service.raw() as raw:
        raw.send(post(service, shared, CHUNKED, body) + HEALTHZ)
        assert raw.answer().json()["output"] == "one\n"
        assert raw.answer().json()["status"] == "ok"


@pytest.mark.row("B8-05")
def test_b8_05_so_is_one_whose_request_is_refused(service, shared):
    body = "b\r\n" + COMMAND[:11] + "\r\nb\r\n" + COMMAND[11:] + "\r\n0\r\n\r\n"
    refused = (f"POST /sessions/{shared.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: wrong\r\n{CHUNKED}\r\n{body}")
    unknown = f"POST /nope HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n{body}"
    for first, status in ((refused, 401), (unknown, 404)):
        with service.raw() as raw:
            raw.send(first + HEALTHZ)
            assert raw.answer().status == status
            second = raw.answer()
            assert second is None or second.json()["status"] == "ok"


@pytest.mark.row("B8-07")
@pytest.mark.parametrize("token, path, status", [("", "/exec", 401), (None, "/exec", 200), (None, "/nope", 404)])
def test_b8_07_expect_gets_100_or_the_final_status_at_once(service, shared, token, path, status):
    head = (f"POST /sessions/{shared.id}{path} HTTP/1.1\r\nHost: x\r\n"
            f"X-Sandbox-Token: {shared.token if token is None else token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(COMMAND)}\r\nExpect: 100-continue\r\n\r\n")
    with service.raw(deadline=60) as raw:
        raw.send(head)
        first = raw.interim()
        assert first in (100, status)
        if first == 100:
            raw.send(COMMAND)
            assert raw.answer().status == status


@pytest.mark.row("B8-07")
def test_b8_07_no_100_for_a_body_that_is_too_large(services):
    service = services(max_body_bytes=1 << 20)
    with service.open() as session, service.raw(deadline=60) as raw:
        raw.send(post(service, session, "Content-Length: 99999999\r\nExpect: 100-continue\r\n"))
        assert raw.interim() == 413


@pytest.mark.row("B8-07")
def test_b8_07_an_unknown_expectation_is_417_or_ignored(service):
    with service.raw(deadline=60) as raw:
        raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n")
        assert raw.answer().status in (200, 417)


@pytest.mark.row("B8-08")
def test_b8_08_dribbled_headers_are_cut_off_and_others_served(service, long):
    connections = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(500 if long else 100)]
    before = service.rss()
    watch = Stopwatch()
    try:
        for one in connections:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ")
        open_ones = list(connections)
        while open_ones and watch.seconds < 100:
            assert service.request("GET", "/healthz", deadline=60).status == 200
            time.sleep(1)
            for one in list(open_ones):
                try:
                    one.sendall(b"a")
                    one.setblocking(False)
                    if one.recv(4096) == b"":
                        open_ones.remove(one)
                except BlockingIOError:
                    pass
                except OSError:
                    open_ones.remove(one)
                finally:
                    one.setblocking(True)
        # The header must be complete 10 s after its connection began.
        assert open_ones == []
        assert 8 <= watch.seconds
        assert service.rss() - before < 50_000_000
    finally:
        for one in connections:
            one.close()


@pytest.mark.row("B8-08")
def test_b8_08_dribbled_bodies_and_tiny_reads_hold_up_nobody(service, session):
    slow = [service.raw(deadline=60) for _ in range(20)]
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    reader.connect(("127.0.0.1", service.port))
    try:
        for one in slow:
            one.send(post(service, session, CHUNKED, "1\r\n{\r\n"))
        body = json.dumps({"argv": ["head", "-c", "5000000", "/dev/zero"], "run_id": "b" * 32})
        reader.sendall((f"POST /sessions/{session.id}/run HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {session.token}\r\n"
                        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        for _ in range(10):
            assert session.sh("echo on") == "on\n"
            reader.recv(1)
            for one in slow:
                one.send("1\r\n \r\n")
    finally:
        reader.close()
        for one in slow:
            one.close()
    until(lambda: session.sh("echo on") == "on\n")


BAD = {
    "a bare LF ends a header line": "GET /healthz HTTP/1.1\nHost: x\n\n",
    "a bare LF within the header": "GET /healthz HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
    "a bare CR": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n",
    "a folded line": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n",
    "two different lengths": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a signed length": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
    "a negative length": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}",
    "a list of different lengths": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n\r\n{}",
    "a hexadecimal length": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n\r\n{}",
    "an empty length": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n{}",
    "a length that wraps": "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551618\r\n\r\n{}",
    "no Host": "GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "a Host that is none": "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
    "a NUL in a field": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n",
    "a control character in a field": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\x07b\r\n\r\n",
    "a NUL in a name": "GET /healthz HTTP/1.1\r\nHost: x\r\nX\0A: b\r\n\r\n",
    "a blank before the colon": "GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n",
    "a blank before the first name": "GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
    "no colon": "GET /healthz HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "an empty name": "GET /healthz HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
    "no version": "GET /healthz\r\nHost: x\r\n\r\n",
    "another protocol": "GET /healthz HTCPCP/1.0\r\nHost: x\r\n\r\n",
    "an odd version": "GET /healthz HTTP/1.10\r\nHost: x\r\n\r\n",
    "two blanks in the request line": "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab in the request line": "GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a control character in the path": "GET /heal\x01thz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path without a slash": "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method that is none": "G(ET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS on a plain port": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 32,
    "HTTP/2 without asking": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.row("B8-09")
@pytest.mark.parametrize("name", BAD)
def test_b8_09_malformed_requests_are_400_and_close(service, name):
    status, closed = answers(service, BAD[name] + HEALTHZ)
    assert status in ((400, 505) if "version" in name or "HTTP/2" in name or "protocol" in name else (400,))
    assert closed


@pytest.mark.row("B8-09")
@pytest.mark.parametrize("path", ["/sessions/%C0%AF", "/sessions/%E0%80%AF", "/sessions/%FF", "/sessions/%zz",
                                  "/sessions/%"])
def test_b8_09_overlong_and_broken_escapes_in_a_path_are_no_id(service, path):
    assert service.request("GET", path).status in (400, 404, 422)


@pytest.mark.row("B8-09")
def test_b8_09_the_absolute_form_is_served_like_the_other_or_refused(service):
    with service.raw() as raw:
        raw.send("GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = raw.answer()
        assert answer.status in (200, 400)
        assert answer.status == 400 or answer.json()["status"] == "ok"


@pytest.mark.row("B8-09")
@pytest.mark.parametrize("text", ["\r\n" + HEALTHZ, "GET /healthz HTTP/1.1\r\nhOsT:\t x \r\n\r\n",
                                  "GET /healthz? HTTP/1.1\r\nHost: [::1]:80\r\nAccept: \xe9\r\n\r\n",
                                  "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"])
def test_b8_09_odd_but_lawful_requests_are_served(service, text):
    with service.raw() as raw:
        raw.send(text)
        assert raw.answer().status in (200, 401)


# Limits --------------------------------------------------------------------------------------------------------------


def test_a_header_block_of_16_kib_is_the_most(service):
    assert service.request("GET", "/healthz", headers={"X-A": "a" * 15_000}).status == 200
    with service.raw() as raw:
        raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + "a" * 17_000 + "\r\n\r\n")
        assert raw.answer().status == 431
        assert raw.at_end()
    with service.raw() as raw:
        raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\n" + "".join(f"X-{n}: a\r\n" for n in range(3000)) + "\r\n")
        assert raw.answer().status == 431


def test_a_target_of_17_kib_is_refused_readably(service):
    with service.raw() as raw:
        raw.send("GET /" + "a" * 17_000 + " HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.answer().status in (414, 431)


@pytest.mark.parametrize("chunked", [False, True])
def test_decided_9_a_413_is_readable_after_the_whole_body_was_sent(services, chunked):
    service = services(max_body_bytes=1 << 20)
    with service.open() as session, service.raw(deadline=60) as raw:
        size = 8 << 20
        if chunked:
            raw.send(post(service, session, CHUNKED))
            for _ in range(size >> 16):
                raw.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            raw.send("0\r\n\r\n")
        else:
            raw.send(post(service, session, f"Content-Length: {size}\r\n"))
            raw.send(b" " * size)
        answer = raw.answer()
        assert answer.status == 413
        assert isinstance(answer.detail, str)


def test_decided_9_a_large_body_without_a_token_is_a_readable_401(service, shared):
    for size in (60_000, 5_000_000):
        with service.raw(deadline=60) as raw:
            body = b'{"command":"' + b"x" * size + b'"}'
            raw.send(f"POST /sessions/{shared.id}/exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n")
            raw.send(body)
            assert raw.answer().status == 401


def test_decided_9_large_bodies_wait_their_turn(services):
    """Four bodies of 3 MB with room for 4 MB: all are served, one after the other."""
    service = services(max_body_bytes=4 << 20, max_inflight_bytes=4 << 20)
    with service.open() as session:
        results = []

        def one():
            results.append(session.exec(": '" + "x" * 3_000_000 + "'; echo done")["output"])

        threads = [threading.Thread(target=one) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == ["done\n"] * 4
