"""The issue's section 3: TLS 1.2 and 1.3 with the service's own certificate."""

import socket
import ssl
import subprocess

import pytest

from harness.client import HTTPSConnection
from harness.service import Service
from harness.wait import until


@pytest.fixture(scope="module")
def secure(request, services, tmp_path_factory_of_ours):
    directory = tmp_path_factory_of_ours
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
                   check=True, capture_output=True, timeout=30)

    class Secure(Service):
        certificate = directory / "cert.pem"
        documents = False  # the document is asked for without TLS

        def request(self, method, path, body=None, headers=None, token=..., deadline=60):
            connection = HTTPSConnection("localhost", self.port, timeout=deadline, context=self.context())
            try:
                connection.request(method, path, headers={"X-Sandbox-Token": self.token})
                response = connection.getresponse()
                response.body = response.read()
                return response
            finally:
                connection.close()

        def context(self, **versions):
            context = ssl.create_default_context(cafile=self.certificate)
            for name, value in versions.items():
                setattr(context, name, value)
            return context

    service = Secure(request.config.getoption("--program"), tls_cert=directory / "cert.pem",
                     tls_key=directory / "key.pem")
    try:
        yield service.start()
        service.stop()
    finally:
        service.discard()


@pytest.fixture(scope="module")
def tmp_path_factory_of_ours():
    import shutil
    import tempfile
    from pathlib import Path
    directory = Path(tempfile.mkdtemp(prefix="tls-"))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_served(secure, version):
    context = secure.context(minimum_version=version, maximum_version=version)
    connection = HTTPSConnection("localhost", secure.port, timeout=60, context=context)
    for _ in range(3):
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        assert (response.status, b'"ok"' in response.read()) == (200, True)
    connection.close()


def test_older_versions_are_refused(secure):
    context = secure.context()
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", secure.port), timeout=60) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="localhost")


def test_plain_http_and_silence_do_it_no_harm(secure):
    silent = socket.create_connection(("127.0.0.1", secure.port), timeout=60)
    with socket.create_connection(("127.0.0.1", secure.port), timeout=60) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" not in plain.recv(4096)[:20]
    assert secure.request("GET", "/policy").status == 200
    # The handshake has a deadline like the header.
    silent.settimeout(60)
    assert silent.recv(1) == b""
    silent.close()


def test_large_answers_and_bodies_pass(secure):
    context = secure.context()
    connection = HTTPSConnection("localhost", secure.port, timeout=30, context=context)
    headers = {"X-Sandbox-Token": secure.token, "Content-Type": "application/json"}
    connection.request("POST", "/sessions", b"{}", headers)
    response = connection.getresponse()
    import json
    id = json.loads(response.read())["session"]["session_id"]
    body = json.dumps({"argv": ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; : " + "y" * 100_000],
                       "run_id": "c" * 32}).encode()
    connection.request("POST", f"/sessions/{id}/run", body, headers)
    response = connection.getresponse()
    assert json.loads(response.read())["stdout"] == "x" * 3_000_000
    connection.request("DELETE", f"/sessions/{id}", headers=headers)
    assert connection.getresponse().status == 204
    connection.close()
    until(lambda: b'"sessions":0' in secure.request("GET", "/healthz").body.replace(b" ", b""))
