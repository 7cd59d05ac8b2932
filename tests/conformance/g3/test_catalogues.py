"""Contract 4.4.2, 5.5 to 5.7 and N10.3: the catalogues, and the names of what is built, held against those of release 0.2.37.
Descriptions and setup commands of the built-in runtimes are in words of our own."""

import json
import re

import pytest
from pydantic_ai_backends.backends.docker._image import image_tag_for
from pydantic_ai_backends.backends.docker.runtimes import BUILTIN_RUNTIMES
from pydantic_ai_backends.remote.server import DEFAULT_RUNTIMES, SUGGESTED_RUNTIMES

CEILINGS = ("memswap_limit", "cpus", "cpu_shares", "pids_limit", "network_mode", "oci_runtime")


@pytest.mark.parametrize("text,theirs", [(None, DEFAULT_RUNTIMES), ("@suggested", SUGGESTED_RUNTIMES)], ids=["default", "suggested"])
def test_5_5_5_6_the_catalogues(start, text, theirs):
    policy = start(runtimes=text).request("GET", "/policy").json()
    assert policy["default_runtime"] == next(iter(theirs)) == "coding"
    rows = {row["alias"]: row for row in policy["runtimes"]}
    assert sorted(rows) == sorted(theirs)
    for alias, entry in theirs.items():
        shown = rows[alias]
        assert (shown["builds"], shown["image"]) == (entry.builds, entry.image_label()) and shown["description"]
        expected = {field: policy[field] if getattr(entry, field) is None else getattr(entry, field) for field in ("mem_limit", *CEILINGS)}
        assert {field: shown[field] for field in expected} == expected, alias


def test_5_7_the_builtins(start):
    told = start(runtimes=",".join(f"{name}=@{name}" for name in BUILTIN_RUNTIMES)).request("GET", "/policy").json()
    rows = {row["alias"]: row["image"] for row in told["runtimes"]}
    assert rows == {name: definition.image or f"{definition.base_image} + {len(definition.packages)} package(s)"
                    for name, definition in BUILTIN_RUNTIMES.items()}


@pytest.mark.parametrize("uid", [None, 4321])
def test_4_4_2_n10_3_the_same_definition_has_the_same_name(target, uid):
    """The name holds a digest of the whole definition, with the service's work directory and uid. Nothing is fetched: the
    base image is behind a proxy that is not there."""
    if target.kind != "oci":
        pytest.skip("a daemon fetches by itself, with the machine's own network")
    theirs = {name: definition for name, definition in BUILTIN_RUNTIMES.items() if definition.base_image}
    service = target.service(runtimes=json.dumps({name: {"runtime": definition.model_dump()} for name, definition in theirs.items()}),
                             work_dir="/work", sandbox_uid=uid)
    service.extra = {**service.extra, "HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    try:
        service.start()
        for name, definition in theirs.items():
            answer = service.request("POST", "/sessions", {"runtime": name})
            assert answer.status == 502 and definition.base_image in answer.detail, answer
        told = re.findall(r"building image (\S+) on (\S+)", service.log.read_text())
        service.stop()
    finally:
        service.discard()
    as_here = [definition.model_copy(update={"work_dir": "/work", "run_as_uid": uid}) for definition in theirs.values()]
    assert told == [(image_tag_for(one), one.base_image) for one in as_here]
