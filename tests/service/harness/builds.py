"""Runtimes that are built, their images and `sandboxd prepare`: alike on both backends."""

import json
import subprocess

REPOSITORY = "pydantic-ai-backend-runtime"
SLOW = 300  # s, of an open that builds, on a machine with much else to do


def runtimes(images, **entries):
    """SANDBOXD_RUNTIMES with `box` first."""
    return json.dumps({"box": images.box_image, **entries})


def built(name, base_image, **fields):
    return {"runtime": {"name": name, "base_image": base_image, **fields}}


def tags(service, name="", docker=None):
    """Of the images that were built for runtimes whose name begins so: the daemon's, or those that the service keeps."""
    if docker is not None:
        found = [tag for image in docker.get("/images/json") for tag in image["RepoTags"] or []]
    else:
        names = service.state / "images/names.json"
        found = json.loads(names.read_text()) if names.exists() else {}
    return sorted(tag for tag in found if tag.startswith(f"{REPOSITORY}:{name}"))


def stored(service, kinds=(".new-", "sha256-", "built-")):
    """What an oci service keeps of images, without the skeleton of the host's."""
    return sorted(path.name for path in (service.state / "images").iterdir() if path.name.startswith(kinds))


def refusal(service, runtime):
    """The words of the 502 that an open gets."""
    answer = service.request("POST", "/sessions", {"runtime": runtime}, deadline=SLOW)
    assert answer.status == 502, answer
    return answer.detail


def lines(service, text):
    """Of its log."""
    return [line for line in service.log.read_text(errors="replace").splitlines() if text in line]


def warming(service):
    return service.request("GET", "/healthz").json()["warming"]


class Prepare:
    """`sandboxd prepare` under way, with the settings of a service that does not run."""

    def __init__(self, service, **changed):
        self.file = service.directory / "prepare"
        with open(self.file, "w") as errors:
            self.process = subprocess.Popen([service.program, "--backend", service.backend, "prepare"],
                                            env={**service.environment(), **changed}, cwd="/", stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)

    @property
    def said(self):
        """On standard error, so far."""
        return self.file.read_text(errors="replace")

    def wait(self, seconds=SLOW):
        """The exit status; there must be nothing on standard output."""
        output, _ = self.process.communicate(timeout=seconds)
        assert output == ""
        return self.process.returncode
