"""The service's own image: its base, its build by the classic builder from this machine's package sources, and its containers."""

import io
import json
import subprocess
import tarfile
import urllib.parse

from . import client
from .service import ROOT, free_port

CONTEXT = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "docker", "include", "src", "Dockerfile"]
BUILD = 5400  # s; compiling on a busy machine included


def sources():
    """The lines of a sources.list for the Debian repositories that this machine uses."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)", "Created-By: Packages"],
                            capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        origin, uri, release, component = line.split("\t")
        if origin == "Debian":
            found.setdefault((uri, release), []).append(component)
    assert found, "apt knows no Debian repository: apt-get update"
    return "".join(f"deb {uri} {release} {' '.join(sorted(set(those)))}\n" for (uri, release), those in sorted(found.items()))


def apt_options():
    """How this machine's apt reaches them: proxies."""
    listed = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return [f"--aptopt={line}" for line in listed.splitlines() if line.startswith("Acquire::") and "Proxy" in line and not line.endswith('"";')]


def load_base(docker, directory, name):
    """A Debian of what every Debian must have, without manuals and translations, as the slim one of the registries."""
    tree = directory / f"{name}.tar"
    listing = directory / f"{name}.list"
    listing.write_text(sources())
    done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=tar", *apt_options(),
                           "--dpkgopt=force-unsafe-io", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                           *[f"--dpkgopt=path-exclude=/usr/share/{one}/*" for one in ("man", "locale", "info", "lintian")],
                           "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright",
                           "bookworm", tree, listing], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    with open(tree, "rb") as packed:
        status, text = docker.request("POST", f"/images/create?fromSrc=-&repo={name}", packed, timeout=300)
    assert status == 200 and "error" not in str(text), text
    tree.unlink()
    return name


def context(folders):
    """The build context as a tar; `folders` are further ones, by their names in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in CONTEXT:
            tar.add(ROOT / name, name)
        for name, folder in folders.items():
            tar.add(folder, name)
    return packed.getvalue()


def build(docker, tag, folders, **arguments):
    """The Dockerfile with these build arguments. Its steps give way to whatever else the machine does."""
    query = urllib.parse.urlencode({"t": tag, "rm": 1, "forcerm": 1, "networkmode": "host", "cpushares": 128,
                                    "buildargs": json.dumps(arguments)})
    status, text = docker.request("POST", f"/build?{query}", context(folders), timeout=BUILD)
    said = text.decode(errors="replace") if isinstance(text, bytes) else json.dumps(text)
    assert status == 200 and '"error"' not in said, said[-4000:]
    return tag


class Container:
    """A container of the service's image, with the daemon's socket."""

    def __init__(self, docker, image, command=(), **settings):
        self.docker = docker
        self.port = free_port()
        self.token = "the-token"
        values = {"token": self.token, "host": "127.0.0.1", "port": self.port, "prewarm": 0, "on_shutdown": "stop",
                  "runtimes": "box=box", **settings}
        body = {"Image": image, "Cmd": list(command), "Env": [f"SANDBOXD_{name.upper()}={value}" for name, value in values.items()],
                "HostConfig": {"NetworkMode": "host", "Binds": [f"{docker.socket}:/var/run/docker.sock"],
                               "GroupAdd": [str(docker.socket.stat().st_gid)]}}
        status, made = docker.request("POST", "/containers/create", body)
        assert status == 201, made
        self.id = made["Id"]
        status, text = docker.request("POST", f"/containers/{self.id}/start")
        assert status == 204, text

    def state(self):
        return self.docker.inspect(self.id)["State"]

    def healthy(self):
        return self.state()["Running"] and self.state()["Health"]["Status"] == "healthy"

    def log(self):
        return self.docker.request("GET", f"/containers/{self.id}/logs?stdout=1&stderr=1")[1].decode(errors="replace")

    def request(self, method, path, body=None):
        return client.request(self.port, method, path, body, None, self.token)

    def wait(self):
        status, ended = self.docker.request("POST", f"/containers/{self.id}/wait", timeout=300)
        assert status == 200
        return ended["StatusCode"]

    def remove(self):
        self.docker.request("DELETE", f"/containers/{self.id}?force=1&v=1")
