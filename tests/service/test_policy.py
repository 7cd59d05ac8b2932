"""Contract 1.4.1, 1.4.2, 2.14, 8.2, 9.1.10, 9.1.11; N2.1 (H.N.6), N19.6, N19.10; DELETE /policy is ours."""

import json
import time

import pytest

from harness.wait import until

ISOLATION = ["network_mode", "oci_runtime", "sandbox_uid", "work_dir", "workspace_root", "persist_containers", "prewarm",
             "runtime", "image", "volumes", "mounts", "devices", "privileged", "native_files", "max_running_commands",
             "not_a_field"]


@pytest.fixture(scope="module")
def service(services, tmp_path_factory):
    return services(max_sessions=20, workspace_root=tmp_path_factory.mktemp("ws"), default_runtime="box")


@pytest.fixture(autouse=True)
def clean(service):
    yield
    assert service.request("DELETE", "/policy").status == 200


def get(service):
    answer = service.request("GET", "/policy")
    assert answer.status == 200, answer
    return answer.json()


def put(service, body, status=200):
    answer = service.request("PUT", "/policy", body)
    assert answer.status == status, answer
    return answer


def without_marks(policy):
    return {key: value for key, value in policy.items() if key != "overridden"}


@pytest.mark.parametrize("change", [
    {"max_sessions": 7}, {"max_open_sessions": 21}, {"max_sessions_per_tenant": 0}, {"evict_idle_after": 60},
    {"idle_timeout": 0}, {"workspace_ttl": 9}, {"container_ttl": 9}, {"execute_timeout": 1}, {"max_read_bytes": 1},
    {"cpus": 0.5}, {"cpu_shares": 2}, {"pids_limit": 3}, {"mem_limit": "64m"}, {"memswap_limit": "2g"},
    {"tmpfs_size": "1m"}, {"default_runtime": "scratch"}, {"max_sessions": None}, {"mem_limit": None}, {"cpus": None},
    {"pids_limit": None}, {"tmpfs_size": None}, {"max_sessions": "3"}, {"max_sessions": 3.0}])
def test_8_2_a_change_is_answered_with_the_whole_policy(service, change):
    before = get(service)
    answer = put(service, change).json()
    name, value = next(iter(change.items()))
    assert answer[name] == (value if not (name == "max_sessions" and value is not None) else int(float(value)))
    assert answer == get(service)
    assert answer["overridden"] == [name]
    changed = {key for key in before if answer[key] != before[key]} - {"overridden"}
    # The ceilings of the runtimes are the effective ones.
    assert changed - {"runtimes"} == {name}


def test_8_2_no_change_is_answered_too(service):
    before = without_marks(get(service))
    assert without_marks(put(service, {}).json()) == before
    assert without_marks(put(service, {"max_sessions": 20}).json()) == before


def test_8_2_a_runtime_named_by_its_image_can_be_given_ceilings(service):
    answer = put(service, {"runtimes": {"box": {"mem_limit": "128m", "cpus": 0.25, "pids_limit": 17}}}).json()
    box = next(one for one in answer["runtimes"] if one["alias"] == "box")
    assert (box["mem_limit"], box["cpus"], box["pids_limit"]) == ("128m", 0.25, 17)
    answer = put(service, {"runtimes": {"box": {"cpus": None}}}).json()
    box = next(one for one in answer["runtimes"] if one["alias"] == "box")
    assert (box["cpus"], box["pids_limit"]) == (2.0, 17), "none is the service's own"
    with service.open() as session:
        assert session.sh("echo up") == "up\n"


@pytest.mark.parametrize("name", ISOLATION)
def test_8_2_what_is_not_its_business_is_422_and_named(service, name):
    answer = put(service, {name: "x", "max_sessions": 3}, 422)
    assert ("extra_forbidden", ["body", name]) in answer.faults()
    assert get(service)["max_sessions"] == 20


def test_8_2_a_runtime_can_not_be_given_an_image(service):
    answer = put(service, {"runtimes": {"box": {"image": "x"}}}, 422)
    assert answer.faults() == [("extra_forbidden", ["body", "runtimes", "box", "image"])]


@pytest.mark.parametrize("body", [{"default_runtime": "cobol"}, {"runtimes": {"cobol": {}}},
                                  {"runtimes": {"cobol": {"cpus": 1}}}, {"default_runtime": ""}])
def test_8_2_an_unknown_runtime_is_400_and_nothing_is_changed(service, body):
    before = get(service)
    answer = put(service, {"max_sessions": 3, "cpus": 1, **body}, 400)
    assert "Unknown runtime" in answer.detail
    assert get(service) == before


@pytest.mark.parametrize("name", ["cpus", "cpu_shares", "pids_limit", "execute_timeout", "max_read_bytes"])
@pytest.mark.parametrize("value", [0, -1])
def test_8_2_zero_is_422_where_it_means_nothing(service, name, value):
    assert put(service, {name: value}, 422).faults() == [("greater_than", ["body", name])]


@pytest.mark.parametrize("name", ["max_sessions", "max_open_sessions", "max_sessions_per_tenant", "evict_idle_after",
                                  "idle_timeout", "workspace_ttl", "container_ttl"])
def test_1_4_2_negative_numbers_are_422(service, name):
    assert put(service, {name: -1}, 422).faults() == [("greater_than_equal", ["body", name])]


@pytest.mark.parametrize("name", ["idle_timeout", "execute_timeout", "max_read_bytes", "default_runtime"])
def test_11_4_what_is_needed_can_not_be_none(service, name):
    before = get(service)
    assert put(service, {name: None, "cpus": 1.0}, 422).faults()[0][1] == ["body", name]
    assert get(service) == before


def test_a_number_of_many_digits_is_told_as_it_is(service):
    assert "1e+60" in put(service, {"cpus": 1e60}, 400).detail


@pytest.mark.parametrize("raw", [b'{"cpus": 1e400}', b'{"cpus": NaN}', b'{"max_sessions": 1e400}'])
def test_n19_6_numbers_that_are_none_are_422(service, raw):
    answer = service.request("PUT", "/policy", raw, headers={"Content-Type": "application/json"})
    assert answer.status == 422, answer


@pytest.mark.parametrize("body, words", [
    ({"max_open_sessions": 19}, "is below max_sessions"), ({"mem_limit": "lots"}, "mem_limit"),
    ({"mem_limit": "2g", "memswap_limit": "1g"}, "is below mem_limit"), ({"tmpfs_size": "x"}, "tmpfs_size"),
    ({"cpus": 1e9}, "cpus")])
def test_9_1_11_what_the_start_refuses_is_refused(service, body, words):
    before = get(service)
    assert words in put(service, body, 400).detail
    assert get(service) == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_8_2_16_the_service_token_is_needed(service, method):
    with service.open() as session:
        for token in (None, "wrong", session.token):
            answer = service.request(method, "/policy", {} if method == "PUT" else None, token=token)
            assert answer.status == 401, answer


def test_9_1_10_ceilings_count_at_once(service):
    put(service, {"max_sessions": 1})
    with service.open():
        answer = service.request("POST", "/sessions", {})
        assert answer.status == 429 and "Session limit of 1" in answer.detail
        assert service.request("GET", "/healthz", token=None).json()["limit"] == 1
        put(service, {"max_sessions": 2})
        with service.open():
            pass


def test_2_14_the_execute_timeout_counts_at_once(service):
    with service.open() as session:
        put(service, {"execute_timeout": 1})
        answer = session.exec("sleep 20")
        assert (answer["exit_code"], answer["timed_out"]) == (124, True)


def test_put_outlives_a_restart_until_it_is_forgotten(services):
    service = services(max_sessions=20, default_runtime="box", on_shutdown="keep")
    put(service, {"max_sessions": 3, "cpu_shares": 100, "runtimes": {"box": {"pids_limit": 33}}})
    put(service, {"max_sessions": None})
    service.kill()
    service.start()
    policy = get(service)
    assert (policy["max_sessions"], policy["cpu_shares"]) == (None, 100)
    assert policy["overridden"] == ["max_sessions", "cpu_shares", "runtimes.box.pids_limit"]
    assert "in force until DELETE /policy: max_sessions, cpu_shares, runtimes.box.pids_limit" in service.tail(100)
    answer = service.request("DELETE", "/policy")
    assert answer.status == 200
    assert (answer.json()["max_sessions"], answer.json()["cpu_shares"], answer.json()["overridden"]) == (20, None, [])
    service.kill()
    service.start()
    assert get(service)["max_sessions"] == 20


def test_2_14_the_overrides_file(services, tmp_path):
    file = tmp_path / "overrides.json"
    file.write_text('{"max_sessions": 4, "runtimes": {"box": {"cpus": 0.5}}}')
    service = services(policy_overrides=file, cleanup_interval=1, default_runtime="box")
    policy = get(service)
    assert (policy["max_sessions"], policy["overridden"]) == (4, [])
    file.write_text('{"max_sessions": 55}')
    until(lambda: get(service)["max_sessions"] == 55)
    for count, bad in enumerate(['{', '{"network_mode": "host"}', '{"max_sessions": 1, "runtimes": {"cobol": {}}}'], 1):
        file.write_text(bad)
        until(lambda: service.tail(200).count("is not applied") >= count, what="the refusal of the file")
        assert get(service)["max_sessions"] == 55
    assert service.tail(200).count("is not applied") == 3
    file.unlink()
    time.sleep(1.5)
    assert get(service)["max_sessions"] == 55, "a file that is gone reverts nothing"
    file.mkdir()
    time.sleep(1.5)
    assert get(service)["max_sessions"] == 55
    put(service, {"max_sessions": 6})
    file.rmdir()
    file.write_text(json.dumps({"max_sessions": 77, "idle_timeout": 99}))
    until(lambda: get(service)["idle_timeout"] == 99)
    assert get(service)["max_sessions"] == 6, "what PUT has set wins"
