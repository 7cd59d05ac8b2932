"""Contract 8.1, lines 6 to 24: index, health, dashboard, authentication."""

import pytest

from target import client

ID = "conformance-id"


def test_8_1_006_the_index_names_the_service(service):
    index = service.request("GET", "/", token=None).json()
    assert (index["service"], index["health"]["status"], index["docs_url"]) == ("sandboxd", "ok", "/docs")


def test_8_1_007_the_index_lists_the_real_routes(service):
    endpoints = service.request("GET", "/", token=None).json()["endpoints"]
    assert endpoints == sorted(set(endpoints))
    assert "/" not in endpoints
    assert {"/healthz", "/sessions", "/sessions/{session_id}/exec"} <= set(endpoints)


def test_8_1_008_the_index_needs_no_token(service):
    assert service.request("GET", "/", token=None).status == 200


def test_8_1_009_no_dashboard_unless_enabled(service):
    assert service.request("GET", "/ui", token=None).status == 404
    index = service.request("GET", "/", token=None).json()
    assert index["ui_url"] is None
    assert "/ui" not in index["endpoints"]


@pytest.fixture(scope="module")
def with_ui(services):
    return services(ui_enabled=1)


def test_8_1_010_the_dashboard_is_one_page(with_ui):
    answer = with_ui.request("GET", "/ui", token=None)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    page = answer.body.decode()
    assert "sandboxd" in page and "<script" in page
    assert "http://" not in page


def test_8_1_011_the_index_advertises_the_dashboard(with_ui):
    index = with_ui.request("GET", "/", token=None).json()
    assert index["ui_url"] == "/ui"
    assert "/ui" in index["endpoints"]


def test_8_1_012_the_dashboard_needs_no_token_and_its_calls_do(with_ui):
    assert with_ui.request("GET", "/ui", token=None).status == 200
    assert with_ui.request("GET", "/sessions", token=None).status == 401


def test_8_1_014_health_needs_no_token(start):
    health = start().request("GET", "/healthz", token=None).json()
    assert (health["status"], health["sessions"], health["open_sessions"]) == ("ok", 0, 0)
    assert health["runtimes"] == ["node", "python"]


@pytest.mark.parametrize("token", [None, "wrong", ""])
def test_8_1_015_opening_needs_the_service_token(service, token):
    assert service.request("POST", "/sessions", {}, token=token).status == 401


@pytest.mark.parametrize("token", [None, "wrong"])
def test_8_1_016_listing_needs_the_service_token(service, token):
    assert service.request("GET", "/sessions", token=token).status == 401


def test_8_1_017_an_operation_needs_a_token(shared):
    assert shared.request("POST", "/exec", {"command": "true"}, token=None).status == 401


def test_8_1_018_a_token_opens_its_own_session_only(shared, session):
    assert shared.request("POST", "/exec", {"command": "true"}, token=session.token).status == 401
    assert shared.request("GET", token=session.token).status == 401


def test_8_1_019_the_service_token_opens_every_session(service, shared):
    answer = shared.request("POST", "/exec", {"command": "echo in"}, token=service.token)
    assert answer.json()["output"] == "in\n"


def test_8_1_020_an_unknown_session_is_404_to_the_service_token(service):
    answer = service.request("POST", f"/sessions/{ID}/exec", {"command": "true"})
    assert answer.status == 404
    assert "No such session" in answer.detail


def test_8_1_021_an_unknown_session_is_401_to_others(service):
    assert service.request("POST", f"/sessions/{ID}/exec", {"command": "true"}, token=None).status == 401
    assert service.request("GET", f"/sessions/{ID}", token=None).status == 401


def raw_status(service, head):
    with client.Raw(service.port) as raw:
        raw.send(head + b"Host: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return raw.answer().status


def test_8_1_022_a_token_of_odd_bytes_is_401_on_a_service_route(service):
    assert raw_status(service, b"GET /sessions HTTP/1.1\r\nX-Sandbox-Token: caf\xe9\r\n") == 401


def test_8_1_023_a_token_of_odd_bytes_is_401_on_a_session_route(service, shared):
    head = f"GET /sessions/{shared.id} HTTP/1.1\r\n".encode() + b"X-Sandbox-Token: caf\xe9\r\n"
    assert raw_status(service, head) == 401


def test_n_113_the_dashboard_speaks_run(with_ui):
    page = with_ui.request("GET", "/ui", token=None).body.decode()
    assert "/run" in page and "crypto.getRandomValues(new Uint8Array(16))" in page
    assert "body.attach" not in page
    assert "/files/" not in page
