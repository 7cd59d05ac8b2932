"""Contract 1.1: what every route has in common; N16.13, N19.4, N19.6, N19.8, N19.9."""

import base64
import json
import os
import re
import socket
import time
import uuid

import pytest

ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


# 1.1.8 a: paths and methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/nope", "/sessions/a/b", "/healthz/x", "//healthz", "/sessionsx"])
def test_1_1_8_a_an_unknown_path_is_404(service, path):
    answer = service.request("GET", path, token=None)
    assert (answer.status, answer.json()) == (404, {"detail": "Not Found"})
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("method, path, allowed", [
    ("DELETE", "/sessions", {"GET", "POST"}),
    ("PATCH", "/sessions/abc", {"GET", "DELETE"}),
    ("GET", "/sessions/abc/exec", {"POST"}),
    ("GET", "/sessions/abc/run", {"POST"}),
    ("POST", "/sessions/abc/events", {"GET"}),
    ("POST", "/healthz", {"GET"}),
    ("POST", "/", {"GET"}),
    ("OPTIONS", "/sessions", {"GET", "POST"}),
])
def test_1_1_8_a_a_wrong_method_is_405_and_allow_names_all_methods_of_the_path(service, method, path, allowed):
    answer = service.request(method, path, token=None)
    assert (answer.status, answer.json()) == (405, {"detail": "Method Not Allowed"})
    # More may come with later routes of the path, never less.
    assert {name.strip() for name in answer.headers["Allow"].split(",")} >= allowed


def test_1_1_8_a_head_is_a_wrong_method_and_has_no_body(service):
    with service.raw() as raw:
        raw.send("HEAD /sessions HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.answer(head_only=True).status == 405
        # Had the 405 sent its body, it would be in the way here.
        assert raw.answer().json()["status"] == "ok"


@pytest.mark.parametrize("method, path", [("GET", "/healthz/"), ("POST", "/sessions/"), ("GET", "/sessions/abc/")])
def test_1_1_8_a_a_trailing_slash_is_307_to_the_path_without(service, method, path):
    answer = service.request(method, path, token=None)
    assert answer.status == 307
    assert answer.headers["Location"] == f"http://127.0.0.1:{service.port}{path.rstrip('/')}"


def test_1_1_8_a_the_redirect_keeps_the_query(service):
    answer = service.request("GET", "/sessions/?usage=true")
    assert answer.status == 307
    assert answer.headers["Location"] == f"http://127.0.0.1:{service.port}/sessions?usage=true"


def test_1_1_8_a_a_trailing_slash_on_an_unknown_path_is_404(service):
    assert service.request("GET", "/nope/").status == 404


def test_1_1_8_a_an_escaped_slash_splits_the_path(service):
    answer = service.request("GET", "/sessions/no-such%2Fevents")
    assert answer.status == 404
    assert answer.detail == "No such session: no-such"


def test_1_1_8_a_escapes_are_decoded_before_matching(service):
    assert service.request("GET", "/health%7A", token=None).status == 200


# 1.1.8 c and 1.2.1: ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["-a", ".a", "_a", "a%20b", "a%0A", "%2e%2e", "a%00", "a" * 65, "%C3%BC", "a:b"])
def test_1_1_8_c_a_malformed_id_is_422_before_the_token(service, id):
    answer = service.request("GET", f"/sessions/{id}", token=None)
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["path", "session_id"])]
    assert answer.detail[0]["ctx"] == {"pattern": ID_PATTERN}


@pytest.mark.parametrize("id", ["a", "A.b-c_d", "0", "a" * 64])
def test_1_2_1_a_well_formed_id_that_is_not_open_is_404_to_the_service_token(service, id):
    answer = service.request("GET", f"/sessions/{id}")
    assert (answer.status, answer.json()) == (404, {"detail": f"No such session: {id}"})


def test_n19_4_a_malformed_id_and_a_faulty_body_are_one_answer(service):
    answer = service.request("POST", "/sessions/-a/exec", {}, token=None)
    assert answer.status == 422
    assert sorted(answer.faults()) == [("missing", ["body", "command"]),
                                       ("string_pattern_mismatch", ["path", "session_id"])]


# 1.1.2, 1.1.3, 1.1.4: tokens --------------------------------------------------------------------------------------

SERVICE_ROUTES = [("GET", "/policy"), ("GET", "/sessions"), ("POST", "/sessions")]
SESSION_ROUTES = [("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/exec"), ("POST", "/run"),
                  ("POST", "/runs/" + "0" * 32 + "/stop")]


def body_for(method):
    return {} if method == "POST" else None


@pytest.mark.parametrize("method, path", SERVICE_ROUTES)
@pytest.mark.parametrize("token", [None, "", "wrong", "w" * 5000, b"\xe9".decode("latin-1")])
def test_1_1_3_service_routes_refuse_any_other_token(service, method, path, token):
    answer = service.request(method, path, body_for(method), token=token)
    assert answer.status == 401
    assert isinstance(answer.detail, str)
    assert answer.headers["WWW-Authenticate"] is None


@pytest.mark.parametrize("method, path", SESSION_ROUTES)
@pytest.mark.parametrize("token", [None, "", "wrong", b"\xe9".decode("latin-1")])
def test_1_1_8_c_session_routes_are_401_whether_or_not_the_session_exists(service, shared, method, path, token):
    for id in (shared.id, "no-such-session"):
        answer = service.request(method, f"/sessions/{id}{path}", body_for(method), token=token)
        assert answer.status == 401, answer
        assert isinstance(answer.detail, str)


@pytest.mark.parametrize("method, path", SERVICE_ROUTES)
def test_1_4_a_session_token_does_not_open_service_routes(service, shared, method, path):
    assert service.request(method, path, body_for(method), token=shared.token).status == 401


def test_1_5_a_session_token_is_for_its_own_session_only(service, shared):
    with service.open() as other:
        assert other.request("GET", token=shared.token).status == 401
        assert other.request("GET", token=service.token).status == 200
        assert other.request("GET").status == 200


def test_1_1_2_the_header_name_has_no_case_and_authorization_is_not_looked_at(service):
    assert service.request("GET", "/policy", token=None, headers={"x-sandbox-TOKEN": service.token}).status == 200
    bearer = {"Authorization": f"Bearer {service.token}"}
    assert service.request("GET", "/policy", token=None, headers=bearer).status == 401


# 1.1.5 and 1.1.8 b, d: bodies -------------------------------------------------------------------------------------

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("body", [b"{", b'{"a":}', b"nope", b'{"a":1}x', b"", b"[1,]"])
def test_1_1_8_b_broken_json_is_422_even_without_a_token(service, body):
    if body == b"":
        pytest.skip("an empty body is no JSON at all: see the test of missing bodies")
    answer = service.request("POST", "/sessions", body, JSON, token=None)
    assert answer.status == 422
    (fault,) = answer.detail
    assert fault["type"] == "json_invalid"
    assert fault["loc"][0] == "body" and isinstance(fault["loc"][1], int) and 0 <= fault["loc"][1] <= len(body)
    assert fault["input"] == {}
    assert isinstance(fault["ctx"]["error"], str)
    assert "url" not in fault


def test_1_1_8_b_a_body_that_is_not_utf8_is_400(service):
    answer = service.request("POST", "/sessions", b'{"session_id":"\xff"}', JSON)
    assert (answer.status, answer.json()) == (400, {"detail": "There was an error parsing the body"})


def test_1_1_5_no_body_at_all(service, shared):
    answer = shared.request("POST", "/exec")
    assert answer.status == 422
    (fault,) = answer.detail
    assert (fault["type"], fault["loc"], fault["input"]) == ("missing", ["body"], None)


@pytest.mark.parametrize("body, headers", [
    (b"[]", JSON),
    (b'"x"', JSON),
    (b"7", JSON),
    (b'{"command":"true"}', {"Content-Type": "text/plain"}),
    (b'{"command":"true"}', {"Content-Type": "application/x-www-form-urlencoded"}),
])
def test_1_1_5_a_body_that_is_no_json_object(shared, body, headers):
    answer = shared.request("POST", "/exec", body, headers)
    assert answer.status == 422
    assert answer.faults() == [("model_attributes_type", ["body"])]


@pytest.mark.parametrize("type", ["application/json", "application/json; charset=utf-8", "Application/JSON",
                                  "application/vnd.api+json"])
def test_1_1_8_b_json_content_types_are_parsed(shared, type):
    assert shared.request("POST", "/exec", b'{"command":"true"}', {"Content-Type": type}).status == 200


def test_n16_13_an_absent_content_type_is_parsed(service, shared):
    body = b'{"command":"echo parsed"}'
    with service.raw() as raw:
        raw.send(f"POST /sessions/{shared.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {shared.token}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n")
        raw.send(body)
        assert raw.answer().json()["output"] == "parsed\n"


def test_1_1_8_d_body_faults_need_a_valid_token(shared):
    assert shared.request("POST", "/exec", {}, token=None).status == 401
    assert shared.request("POST", "/exec", {}).status == 422


@pytest.mark.parametrize("body, faults", [
    ({}, [("missing", ["body", "command"])]),
    ({"command": 5}, [("string_type", ["body", "command"])]),
    ({"command": None}, [("string_type", ["body", "command"])]),
    ({"command": "true", "timeout_seconds": "abc"}, [("int_parsing", ["body", "timeout_seconds"])]),
    ({"command": "true", "timeout_seconds": 5.5}, [("int_from_float", ["body", "timeout_seconds"])]),
    ({"command": "true", "timeout_seconds": []}, [("int_type", ["body", "timeout_seconds"])]),
    ({"timeout_seconds": {}}, [("missing", ["body", "command"]), ("int_type", ["body", "timeout_seconds"])]),
])
def test_1_1_5_faults_of_exec_one_object_each(shared, body, faults):
    answer = shared.request("POST", "/exec", body)
    assert answer.status == 422
    assert answer.faults() == faults
    for fault in answer.detail:
        assert {"type", "loc", "msg", "input"} <= set(fault) <= {"type", "loc", "msg", "input", "ctx"}


@pytest.mark.parametrize("padding", [0, 256 * 1024, 4 * 1024 * 1024])
def test_1_1_5_a_body_is_read_alike_whatever_its_size(shared, padding):
    rest = {"padding": "x" * padding}  # unknown: ignored
    assert shared.request("POST", "/exec", {"command": "echo read", **rest}).json()["output"] == "read\n"
    answer = shared.request("POST", "/exec", {"command": 5, "timeout_seconds": [], **rest})
    assert answer.faults() == [("string_type", ["body", "command"]), ("int_type", ["body", "timeout_seconds"])]
    answer = shared.request("POST", "/exec", json.dumps(rest)[:-1].encode(), JSON)
    assert (answer.status, answer.detail[0]["type"]) == (422, "json_invalid")
    answer = shared.request("POST", "/exec", json.dumps(rest).encode() + b"\xff", JSON)
    assert (answer.status, answer.json()) == (400, {"detail": "There was an error parsing the body"})


@pytest.mark.parametrize("size", [1000, 256 * 1024 - 500, 256 * 1024 + 3, 4 * 1024 * 1024])
def test_an_answer_is_written_alike_whatever_its_size(shared, size):
    data = os.urandom(size)
    written = shared.request("POST", "/write", {"path": f"sized-{size}", "content_b64": base64.b64encode(data).decode()})
    assert (written.status, written.json()["error"]) == (200, None)
    read = shared.request("POST", "/read_bytes", {"path": f"sized-{size}"})
    assert base64.b64decode(read.json()["content_b64"], validate=True) == data
    ran = shared.request("POST", "/run", {"argv": ["cat", f"sized-{size}"], "env": {}, "timeout_seconds": None,
                                          "run_id": uuid.uuid4().hex})
    assert (ran.status, ran.json()["stdout"]) == (200, data.decode(errors="replace"))
    refused = shared.request("POST", "/write", {"path": "sized", "content_b64": "A" * (size // 4 * 4) + "A-=="})
    assert (refused.status, refused.json()) == (400, {"detail": "content_b64 is not valid base64"})


@pytest.mark.parametrize("value", [3, 3.0, True, "3", " 7 ", "7.0", "1_000", None])
def test_1_1_6_what_passes_for_an_integer(shared, value):
    assert shared.request("POST", "/exec", {"command": "true", "timeout_seconds": value}).status == 200


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_n19_6_numbers_that_are_none_are_422(shared, word):
    answer = shared.request("POST", "/exec", b'{"command":"true","timeout_seconds":%s}' % word.encode(), JSON)
    assert answer.status == 422


@pytest.mark.parametrize("value", ["true", "T", "yes", "Y", "on", "1", "false", "f", "No", "n", "OFF", "0"])
def test_1_1_6_what_passes_for_a_boolean_in_a_query(service, value):
    assert service.request("GET", f"/sessions?usage={value}").status == 200


@pytest.mark.parametrize("value", ["", "maybe", "2", "+true", "true+"])
def test_1_1_6_what_does_not(service, value):
    answer = service.request("GET", f"/sessions?usage={value}")
    assert answer.status == 422
    assert answer.faults() == [("bool_parsing", ["query", "usage"])]


@pytest.mark.parametrize("value, fault", [([], "bool_type"), (None, "bool_type"), ("maybe", "bool_parsing"),
                                          ("", "bool_parsing")])
def test_1_1_6_what_does_not_pass_for_a_boolean_in_a_body(service, value, fault):
    answer = service.request("POST", "/sessions", {"reuse": value})
    assert answer.status == 422
    assert answer.faults() == [(fault, ["body", "reuse"])]


def test_1_1_6_unknown_keys_are_ignored(shared):
    body = {"command": "echo fine", "network_mode": "host", "x": {"y": [1]}}
    answer = shared.request("POST", "/exec", body)
    assert (answer.status, answer.json()["output"]) == (200, "fine\n")


def test_1_1_7_a_trailing_newline_does_not_pass_a_pattern(service):
    answer = service.request("POST", "/sessions", {"session_id": "abc\n"})
    assert answer.status == 422
    assert answer.faults() == [("string_pattern_mismatch", ["body", "session_id"])]


@pytest.mark.parametrize("value, type, ctx", [("-1", "greater_than_equal", {"ge": 0}), ("x", "int_parsing", None)])
def test_1_1_5_faults_of_a_query(shared, value, type, ctx):
    answer = shared.request("GET", f"/events?after={value}")
    assert answer.status == 422
    assert answer.faults() == [(type, ["query", "after"])]
    assert answer.detail[0].get("ctx") == ctx


def test_1_1_1_answers_are_json_in_utf8(shared):
    answer = shared.request("POST", "/exec", {"command": "printf 'grün €'"})
    assert answer.headers["Content-Type"] == "application/json"
    assert "grün €".encode() in answer.body or json.loads(answer.body)["output"] == "grün €"


# 1.1.10 and the rest of HTTP --------------------------------------------------------------------------------------


def test_1_1_10_an_idle_connection_is_kept_noticeably_longer_than_5_s(service):
    with service.connect() as connection:
        assert connection.request("GET", "/healthz").status == 200
        first = connection.http.sock
        time.sleep(6.5)
        assert connection.request("GET", "/healthz").status == 200
        assert connection.http.sock is first


def test_pipelined_requests_are_answered_in_order(service, shared):
    def exec_of(command):
        body = json.dumps({"command": command})
        return (f"POST /sessions/{shared.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {shared.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")

    with service.raw() as raw:
        raw.send(exec_of("sleep 0.3; echo one") + exec_of("echo two") + "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.answer().json()["output"] == "one\n"
        assert raw.answer().json()["output"] == "two\n"
        assert raw.answer().json()["status"] == "ok"


def test_http_1_0_and_connection_close_are_closed_after_the_answer(service):
    for request in ("GET /healthz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
        with service.raw() as raw:
            raw.send(request)
            assert raw.answer().status == 200
            assert raw.at_end()


def test_n19_9_a_half_closed_client_still_gets_its_answer(service, shared):
    body = json.dumps({"command": "sleep 0.5; echo still here"})
    with service.raw() as raw:
        raw.send(f"POST /sessions/{shared.id}/exec HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {shared.token}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        raw.half_close()
        assert raw.answer().json()["output"] == "still here\n"


def test_a_request_id_is_repeated_or_made(service):
    given = service.request("GET", "/healthz", headers={"X-Request-Id": "my-id.7"})
    assert given.headers["X-Request-Id"] == "my-id.7"
    made = service.request("GET", "/healthz").headers["X-Request-Id"]
    assert re.fullmatch(r"[A-Za-z0-9._-]{8,64}", made)
    assert service.request("GET", "/healthz").headers["X-Request-Id"] != made


def test_a_request_id_never_smuggles_anything_into_the_log(service):
    answer = service.request("GET", "/healthz", headers={"X-Request-Id": "a b\x7f\xe9" + "x" * 300})
    assert answer.status in (200, 400)
    if answer.status == 200:
        assert re.fullmatch(r"[\x21-\x7e]{1,128}", answer.headers["X-Request-Id"])


def test_each_request_has_one_access_log_line_with_its_id(service):
    service.request("GET", "/healthz", headers={"X-Request-Id": "only-once-5151"})
    deadline = time.monotonic() + 60
    while "only-once-5151" not in service.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = [line for line in service.log.read_text().splitlines() if "only-once-5151" in line]
    assert len(lines) == 1
    assert "GET" in lines[0] and "/healthz" in lines[0] and "200" in lines[0]


def test_tokens_are_in_no_log_line(service, shared):
    text = service.log.read_text()
    assert service.token not in text
    assert shared.token not in text


def test_a_client_that_connects_and_says_nothing_costs_nobody_else_anything(service):
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(50)]
    try:
        assert service.request("GET", "/healthz", deadline=60).status == 200
    finally:
        for one in idle:
            one.close()
