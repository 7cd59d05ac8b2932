"""The service's own description (contract 1.3.4) and the page that shows it."""

import base64
import hashlib
import re

import pytest


@pytest.fixture(scope="module")
def document(service):
    answer = service.request("GET", "/openapi.json", token=None)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    return answer.json()


@pytest.fixture(scope="module")
def page(service):
    answer = service.request("GET", "/docs", token=None)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    return answer


def test_the_document_is_of_this_service(service, document):
    assert document["openapi"] == "3.1.0"
    assert document["info"]["title"] == "sandboxd"
    listed = service.request("GET", "/", token=None).json()["endpoints"]
    assert sorted(document["paths"]) == sorted([*listed, "/"])
    assert {"/docs", "/openapi.json"} <= set(listed)


def test_every_path_and_no_other_method_is_served(service, document):
    for path, methods in document["paths"].items():
        answer = service.request("TRACE", path.replace("{session_id}", "nobody").replace("{run_id}", "0" * 32))
        assert answer.status == 405
        assert answer.headers["Allow"] == ", ".join(sorted(method.upper() for method in methods))


def test_what_needs_a_token_says_so(service, document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            target = path.replace("{session_id}", "nobody").replace("{run_id}", "0" * 32)
            status = service.request(method.upper(), target, b"{}", {"Content-Type": "application/json"},
                                     token=None).status
            assert (status == 401) == bool(operation["security"]), (method, path, status)


def test_the_page_runs_its_own_script_and_loads_nothing(page):
    html = page.body.decode()
    policy = page.headers["Content-Security-Policy"]
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        assert len(inside) == 1 and html.count(f"<{tag}") == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for word in ("http:", "https:", "//cdn", "src=", "@import", "url(", "innerHTML"):
        assert word not in html, word
    assert re.findall(r'href="([^"]*)"', html) == ["openapi.json", "openapi.json"]


def test_a_slash_too_many_is_sent_on(service):
    answer = service.request("GET", "/docs/", token=None)
    assert (answer.status, answer.headers["Location"]) == (307, f"http://127.0.0.1:{service.port}/docs")
