"""Contract 8.2: PUT /policy, and the overrides file."""

import json
import os

import pytest

from target import until

ISOLATION = ["network_mode", "oci_runtime", "sandbox_uid", "work_dir", "workspace_root", "persist_containers",
             "prewarm", "runtime", "image", "volumes", "mounts", "devices", "privileged"]


@pytest.fixture
def plain(start):
    return start(max_sessions=20)


def contracted(answer):
    """The policy without what this service adds to it."""
    return {name: value for name, value in answer.json().items() if name != "overridden"}


def put(service, **body):
    answer = service.request("PUT", "/policy", body)
    assert answer.status == 200, answer
    return contracted(answer)


def policy(service):
    return contracted(service.request("GET", "/policy"))


def runtime(answer, alias):
    return next(row for row in answer["runtimes"] if row["alias"] == alias)


def test_8_2_001_a_ceiling_is_written_and_reported(plain):
    assert put(plain, mem_limit="512m", cpus=1.5)["mem_limit"] == "512m"
    assert (policy(plain)["mem_limit"], policy(plain)["cpus"]) == ("512m", 1.5)


def test_8_2_002_lifetimes_too(plain):
    put(plain, idle_timeout=60, workspace_ttl=120, container_ttl=180)
    told = policy(plain)
    assert (told["idle_timeout"], told["workspace_ttl"], told["container_ttl"]) == (60, 120, 180)


def test_8_2_003_004_one_runtimes_ceiling(plain):
    put(plain, runtimes={"node": {"mem_limit": "64m", "pids_limit": 33}})
    told = policy(plain)
    assert (runtime(told, "node")["mem_limit"], runtime(told, "node")["pids_limit"]) == ("64m", 33)
    assert (runtime(told, "python")["mem_limit"], runtime(told, "python")["pids_limit"]) == ("1g", 512)
    with plain.open(runtime="node") as session:
        assert session.request("GET", "?usage=true").json()["usage"]["memory_limit_bytes"] == 64 * 2**20


def test_8_2_005_the_default_is_switched(plain):
    assert put(plain, default_runtime="node")["default_runtime"] == "node"
    with plain.open() as session:
        assert session.info()["runtime"] == "node"


def test_8_2_006_absent_is_untouched(plain):
    before = policy(plain)
    assert put(plain, pids_limit=99) == {**before, "pids_limit": 99, "runtimes": [
        {**row, "pids_limit": 99} for row in before["runtimes"]]}


def test_8_2_007_null_clears(plain):
    put(plain, mem_limit=None, max_sessions=None)
    assert (policy(plain)["mem_limit"], policy(plain)["max_sessions"]) == (None, None)


def test_8_2_008_031_the_same_value_is_no_change(plain):
    before = policy(plain)
    assert put(plain, mem_limit=before["mem_limit"], idle_timeout=before["idle_timeout"]) == before
    assert put(plain) == before


@pytest.mark.parametrize("field", ISOLATION)
def test_8_2_009_018_isolation_is_refused(service, field):
    before = policy(service)
    answer = service.request("PUT", "/policy", {field: "host", "mem_limit": "77m"})
    assert answer.status == 422
    assert answer.faults() == [("extra_forbidden", ["body", field])]
    assert policy(service) == before


def test_8_2_010_a_runtime_is_given_no_image(service):
    answer = service.request("PUT", "/policy", {"runtimes": {"python": {"image": "other"}}})
    assert answer.status == 422
    assert answer.faults() == [("extra_forbidden", ["body", "runtimes", "python", "image"])]


def test_8_2_011_017_an_unknown_runtime_is_400(service):
    answer = service.request("PUT", "/policy", {"runtimes": {"perl": {"mem_limit": "64m"}}})
    assert answer.status == 400
    assert "Unknown runtime 'perl'" in answer.detail
    assert [row["alias"] for row in policy(service)["runtimes"]] == ["node", "python"]


def test_8_2_012_an_unknown_default_is_400(service):
    answer = service.request("PUT", "/policy", {"default_runtime": "perl", "mem_limit": "77m"})
    assert answer.status == 400
    assert "Unknown runtime 'perl'" in answer.detail
    assert (policy(service)["default_runtime"], policy(service)["mem_limit"]) == ("python", "1g")


@pytest.mark.parametrize("field", ["cpus", "cpu_shares", "pids_limit", "execute_timeout"])
def test_8_2_013_zero_is_refused(service, field):
    answer = service.request("PUT", "/policy", {field: 0})
    assert answer.status == 422
    assert [(kind, where) for kind, where in answer.faults()] == [("greater_than", ["body", field])]


def test_8_2_015_put_answers_the_whole_policy(plain):
    assert put(plain, idle_timeout=99) == policy(plain)


def test_8_2_016_put_needs_the_service_token(service, shared):
    assert service.request("PUT", "/policy", {}, token=None).status == 401
    assert service.request("PUT", "/policy", {}, token=shared.token).status == 401


@pytest.mark.ours
def test_8_2_020_a_change_reaches_the_next_sandbox_only(plain):
    with plain.open() as before:
        put(plain, mem_limit="96m")
        with plain.open() as after:
            limits = [one.request("GET", "?usage=true").json()["usage"]["memory_limit_bytes"] for one in (before, after)]
    assert limits == [2**30, 96 * 2**20]


@pytest.fixture
def overrides(start, own_root):
    """overrides(text): a service whose overrides file holds `text`, which it looks at every second."""
    def make(text):
        path = own_root / "overrides.json"
        if text is not None:
            path.write_text(text)
        service = start(policy_overrides=path, cleanup_interval=1)
        service.file = path
        return service

    return make


def test_8_2_019_032_the_file_is_applied_before_serving(overrides):
    told = policy(overrides(json.dumps({"idle_timeout": 77, "runtimes": {"node": {"mem_limit": "64m"}}})))
    assert told["idle_timeout"] == 77
    assert runtime(told, "node")["mem_limit"] == "64m"


def test_8_2_020_029_an_absent_file_is_fine(overrides):
    assert policy(overrides(None))["idle_timeout"] == 1800


@pytest.mark.parametrize("text", ["{broken", '{"privileged": true, "idle_timeout": 77}', "[]"])
def test_8_2_021_022_a_faulty_file_changes_nothing(overrides, text):
    assert policy(overrides(text))["idle_timeout"] == 1800


def test_8_2_023_an_unknown_runtime_is_not_made(overrides):
    told = policy(overrides('{"runtimes": {"perl": {"cpus": 1}}}'))
    assert [row["alias"] for row in told["runtimes"]] == ["node", "python"]


def test_8_2_024_a_directory_is_not_fatal(start, own_root):
    assert policy(start(policy_overrides=own_root))["idle_timeout"] == 1800


def rewrite(path, body):
    path.write_text(json.dumps(body))
    stat = path.stat()
    os.utime(path, (stat.st_atime, stat.st_mtime + 5))


def test_8_2_025_026_an_edit_is_noticed(overrides):
    service = overrides('{"idle_timeout": 77}')
    rewrite(service.file, {"idle_timeout": 99})
    until(lambda: policy(service)["idle_timeout"] == 99, what="the new value")


@pytest.mark.ours
def test_8_2_026_what_put_set_wins_until_it_is_forgotten(overrides):
    service = overrides('{"idle_timeout": 77}')
    put(service, idle_timeout=88)
    rewrite(service.file, {"idle_timeout": 99, "execute_timeout": 55})
    until(lambda: policy(service)["execute_timeout"] == 55, what="a pass")
    assert policy(service)["idle_timeout"] == 88
    assert service.request("DELETE", "/policy").status in (200, 204)
    assert policy(service)["idle_timeout"] == 99


def test_8_2_027_028_deleting_it_reverts_nothing(overrides):
    service = overrides('{"idle_timeout": 77}')
    service.file.unlink()
    # A second change shows that a pass has gone by.
    rewrite_at = service.file
    rewrite_at.write_text(json.dumps({"execute_timeout": 55}))
    until(lambda: policy(service)["execute_timeout"] == 55, what="a pass")
    assert policy(service)["idle_timeout"] == 77
