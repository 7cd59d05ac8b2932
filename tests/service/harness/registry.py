"""Registries on loopback: Debian's docker-registry, and one of the tests' own that can be slow or lie."""

import base64
import crypt
import json
import os
import shutil
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .service import free_port
from .wait import until

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PROGRAM = shutil.which("docker-registry") or shutil.which("registry")
ABSENT = "no registry program: apt-get install docker-registry"


def tool(*argv):
    done = subprocess.run([str(one) for one in argv], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


class Registry:
    """docker-registry with its own storage; with `password` for the user "reader", with `tls` behind a certificate of its own.
    It runs behind the words of `beside`: in another network namespace, say."""

    def __init__(self, password=None, tls=False, beside=()):
        self.directory = Path(tempfile.mkdtemp(prefix="registry-"))
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.password = password
        self.beside = list(beside)
        http = {"addr": self.host}
        if tls:
            self.certificate = self.directory / "server.crt"
            tool("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.directory / "server.key", "-out",
                 self.certificate, "-days", "2", "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1")
            http["tls"] = {"certificate": str(self.certificate), "key": str(self.directory / "server.key")}
        config = {"version": "0.1", "log": {"level": "error"}, "http": http,
                  "storage": {"filesystem": {"rootdirectory": str(self.directory / "data")}}}
        if password:
            (self.directory / "users").write_text("reader:" + crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH)) + "\n")
            config["auth"] = {"htpasswd": {"realm": "tests", "path": str(self.directory / "users")}}
        (self.directory / "config.yml").write_text(json.dumps(config))  # JSON is YAML
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen([*self.beside, PROGRAM or "docker-registry", "serve", self.directory / "config.yml"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._answers, 20, "the registry's answer")

    def _answers(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        return subprocess.run([*self.beside, "curl", "-sk", "-o", "/dev/null", f"http://{self.host}/v2/"], timeout=10).returncode in (0, 52)

    def login(self):
        """What the docker command's config.json says of it."""
        return {"auths": {self.host: {"auth": base64.b64encode(f"reader:{self.password}".encode()).decode()}}}

    def push_from(self, daemon, image, name):
        """An image of a daemon as HOST/name:1, which the daemon does not keep; the whole reference."""
        to = f"{self.host}/{name}"
        (self.directory / "config.json").write_text(json.dumps(self.login()))
        assert daemon.request("POST", f"/images/{image}/tag?repo={to}&tag=1")[0] == 201
        done = subprocess.run(["docker", "-H", daemon.host, "push", f"{to}:1"], capture_output=True, text=True, timeout=120,
                              env={"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(self.directory)})
        assert done.returncode == 0, done.stderr
        assert daemon.request("DELETE", f"/images/{to}:1")[0] == 200
        return f"{to}:1"

    def push(self, layout, tag, name):
        """`layout:tag` as HOST/name; the whole reference."""
        to = f"{self.host}/{name}"
        credentials = ["--dest-creds", f"reader:{self.password}"] if self.password else []
        tool("skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", *credentials, f"oci:{layout}:{tag}", f"docker://{to}")
        return to

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.directory)


class OwnRegistry:
    """Serves the first image of `layout` under any tag, or answers 500 while it is `broken`. `gate` holds its layers back while it is
    cleared; `asked` counts blobs."""

    def __init__(self, layout):
        self.layout = Path(layout)
        self.broken = False
        self.gate = threading.Event()
        self.gate.set()
        self.asked = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                parts = self.path.split("/")
                if registry.broken:
                    return self.send_error(500)
                if self.path == "/v2/":
                    return self.answer(b"{}", "application/json")
                digest = parts[-1] if parts[-1].startswith("sha256:") else registry.manifest
                data = registry.blob(digest)
                if parts[-2] == "manifests":
                    return self.answer(data, MANIFEST, digest)
                if self.command == "GET":
                    registry.asked[digest] = registry.asked.get(digest, 0) + 1
                if digest in registry.layers:
                    registry.gate.wait(60)
                return self.answer(data, "application/octet-stream", digest)

            def answer(self, data, kind, digest=None):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                if digest:
                    self.send_header("Docker-Content-Digest", digest)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that was killed
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def manifest(self):
        return json.loads((self.layout / "index.json").read_text())["manifests"][0]["digest"]

    @property
    def layers(self):
        return [layer["digest"] for layer in json.loads(self.blob(self.manifest))["layers"]]

    def blob(self, digest):
        return (self.layout / "blobs/sha256" / digest.removeprefix("sha256:")).read_bytes()

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
