"""HTTP as the tests need it: one request per connection, a kept connection, and raw bytes."""

import base64
import http.client
import json
import random
import socket
import uuid

from . import documented

DEADLINE = 90.0  # s, of one socket operation


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        return self.json()["detail"]

    def faults(self):
        """The faults of a 422 as (type, loc) pairs."""
        return [(fault["type"], fault["loc"]) for fault in self.detail]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def encode(body, headers):
    """Request body and headers: dicts and lists become JSON, bytes stay as they are."""
    headers = dict(headers or {})
    if body is None or isinstance(body, bytes):
        return body, headers
    headers.setdefault("Content-Type", "application/json")
    return json.dumps(body).encode(), headers


class Response(http.client.HTTPResponse):
    """Skips interim answers, such as the 102 of a slow open; the library's own skips 100 only."""

    def _read_status(self):
        while True:
            version, status, reason = super()._read_status()
            if not 100 <= status < 200:
                return version, status, reason
            while self.fp.readline(65536) not in (b"\r\n", b""):
                pass


class HTTPConnection(http.client.HTTPConnection):
    response_class = Response


class HTTPSConnection(http.client.HTTPSConnection):
    response_class = Response


class Connection:
    """One kept-alive connection."""

    def __init__(self, port, token=None, deadline=DEADLINE):
        self.token = token
        self.http = HTTPConnection("127.0.0.1", port, timeout=deadline)

    def request(self, method, path, body=None, headers=None, token=...):
        body, headers = encode(body, headers)
        token = self.token if token is ... else token
        if token is not None:
            headers["X-Sandbox-Token"] = token
        self.http.request(method, path, body=body, headers=headers)
        response = self.http.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        documented.check(self.http.port, method, path, answer)
        return answer

    def close(self):
        self.http.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def request(port, method, path, body=None, headers=None, token=None, deadline=DEADLINE):
    """One request on a connection of its own."""
    with Connection(port, token, deadline) as connection:
        return connection.request(method, path, body, dict(headers or {}, Connection="close"))


class Raw:
    """Bytes out, bytes in."""

    def __init__(self, port, deadline=DEADLINE):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=deadline)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def answer(self, head_only=False):
        """The next answer, interim ones (1xx) skipped; None when the other side closes before one is complete."""
        while True:
            head = self._until(b"\r\n\r\n")
            if head is None:
                return None
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ", 2)[1])
            if 100 <= status < 200:
                continue
            headers = http.client.HTTPMessage()
            for line in lines[1:]:
                if line:
                    name, _, value = line.partition(":")
                    headers[name] = value.strip()
            length = 0 if head_only or status in (204, 304) else int(headers.get("Content-Length", "0"))
            body = self._exactly(length)
            return None if body is None else Answer(status, headers, body)

    def interim(self):
        """The status of the next head, interim or not, without its body."""
        head = self._until(b"\r\n\r\n")
        return None if head is None else int(head.split(b" ", 2)[1])

    def at_end(self):
        """True when the other side closes without another byte."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with a reset instead of the polite way."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def close(self):
        self.socket.close()

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            return False
        self.buffer += data
        return data != b""

    def _until(self, mark):
        while mark not in self.buffer:
            if not self._more():
                return None
        head, _, self.buffer = self.buffer.partition(mark)
        return head

    def _exactly(self, length):
        while len(self.buffer) < length:
            if not self._more():
                return None
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return body

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def run_id():
    return uuid.uuid4().hex


def marker():
    """A number of seconds for `sleep` that no other test, here or beside us, uses: finds its process again."""
    return str(random.SystemRandom().randint(10**8, 10**9))


class Session:
    """An open session, with its own token."""

    def __init__(self, port, created):
        self.port = port
        self.created = created
        self.id = created["session"]["session_id"]
        self.token = created["token"]

    def request(self, method, path="", body=None, headers=None, token=..., deadline=DEADLINE):
        token = self.token if token is ... else token
        return request(self.port, method, f"/sessions/{self.id}{path}", body, headers, token, deadline)

    def connect(self, deadline=DEADLINE):
        return Connection(self.port, self.token, deadline)

    def exec(self, command, timeout=None, connection=None, deadline=DEADLINE):
        """The answer's object; anything but 200 fails the test."""
        body = {"command": command, "timeout_seconds": timeout}
        if connection is not None:
            answer = connection.request("POST", f"/sessions/{self.id}/exec", body)
        else:
            answer = self.request("POST", "/exec", body, deadline=deadline)
        assert answer.status == 200, answer
        return answer.json()

    def sh(self, command, timeout=None):
        """The output of a command that must succeed."""
        result = self.exec(command, timeout)
        assert result["exit_code"] == 0, result
        return result["output"]

    def run(self, argv, timeout=None, env=None, id=None, connection=None, deadline=DEADLINE):
        body = {"argv": argv, "env": env or {}, "timeout_seconds": timeout, "run_id": id or run_id()}
        if connection is not None:
            answer = connection.request("POST", f"/sessions/{self.id}/run", body)
        else:
            answer = self.request("POST", "/run", body, deadline=deadline)
        assert answer.status == 200, answer
        return answer.json()

    def op(self, name, connection=None, deadline=DEADLINE, **body):
        """The answer to an operation on files; anything but 200 fails the test."""
        if connection is not None:
            answer = connection.request("POST", f"/sessions/{self.id}/{name}", body)
        else:
            answer = self.request("POST", f"/{name}", body, deadline=deadline)
        assert answer.status == 200, answer
        return answer.json()

    def read(self, path, **body):
        return self.op("read", path=path, **body)["content"]

    def read_bytes(self, path):
        return base64.b64decode(self.op("read_bytes", path=path)["content_b64"], validate=True)

    def write(self, path, data):
        """The answer's object."""
        data = data.encode() if isinstance(data, str) else data
        return self.op("write", path=path, content_b64=base64.b64encode(data).decode())

    def put(self, path, data):
        """Writes a file; the absolute path."""
        answer = self.write(path, data)
        assert answer["error"] is None, answer
        return answer["path"]

    def edit(self, path, old, new, replace_all=False, connection=None):
        return self.op("edit", connection, path=path, old_string=old, new_string=new, replace_all=replace_all)

    def exists(self, path):
        return self.op("exists", path=path)["exists"]

    def names(self, path):
        """The names `ls` tells."""
        return [row["name"] for row in self.op("ls", path=path)]

    def glob(self, pattern, **body):
        """The paths `glob` tells."""
        return [row["path"] for row in self.op("glob", pattern=pattern, **body)]

    def grep(self, pattern, **body):
        """The matches as (path, line number, line)."""
        answer = self.op("grep", pattern=pattern, **body)
        assert answer["error"] is None, answer
        return [(row["path"], row["line_number"], row["line"]) for row in answer["matches"]]

    def stop_run(self, id, deadline=DEADLINE):
        return self.request("POST", f"/runs/{id}/stop", deadline=deadline)

    def events(self, after=0):
        answer = self.request("GET", f"/events?after={after}")
        assert answer.status == 200, answer
        return answer.json()

    def info(self):
        answer = self.request("GET")
        assert answer.status == 200, answer
        return answer.json()

    def command_lines(self):
        """What runs in the sandbox, as its own processes see it: pid to command line (needs a shell and /proc)."""
        text = self.sh("for p in /proc/[0-9]*; do a=$({ tr '\\000' ' ' <$p/cmdline; } 2>/dev/null) || continue; "
                       'echo "${p#/proc/} $a"; done')
        rows = (line.split(" ", 1) for line in text.splitlines())
        return {int(row[0]): row[1].strip() if len(row) > 1 else "" for row in rows}

    def running(self, argument):
        """Pids of processes of the sandbox that have `argument` as a whole word in their command line, the shells that
        were asked to start them left out."""
        return [pid for pid, line in self.command_lines().items()
                if argument in line.split() and line.split()[0] not in ("sh", "/bin/sh") and "-c" not in line.split()]

    def close(self):
        return self.request("DELETE")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        answer = self.close()
        assert answer.status in (204, 404), answer
