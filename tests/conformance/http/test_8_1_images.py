"""Contract 8.1: runtime entries and catalogues, as the policy shows them."""

import json

import pytest


@pytest.fixture
def shown(start):
    """shown(entries): the policy's rows of a service with that allowlist, by alias."""
    def rows(entries, **settings):
        told = start(runtimes=entries if entries is None else json.dumps(entries), **settings).request("GET", "/policy").json()
        return {row["alias"]: row for row in told["runtimes"]}

    return rows


def test_8_1_163_a_named_builtin(shown):
    row = shown({"data": "@python-datascience"})["data"]
    assert row["builds"] is True
    assert "pandas" in row["description"]
    assert row["image"] == "python:3.12-slim + 5 package(s)"


def test_8_1_164_a_ready_builtin_shows_its_image(shown):
    assert shown({"plain": "@node-minimal"})["plain"]["image"] == "node:20-slim"


def test_8_1_165_own_description_wins(shown):
    assert shown({"data": {"runtime": "python-datascience", "description": "mine"}})["data"]["description"] == "mine"


def test_8_1_166_a_bare_image_describes_itself(shown):
    row = shown({"plain": "python:3.12-slim"})["plain"]
    assert (row["description"], row["image"], row["builds"]) == ("python:3.12-slim", "python:3.12-slim", False)


def test_8_1_167_built_from_its_base(shown):
    row = shown({"made": {"runtime": {"name": "made", "base_image": "debian:12", "packages": ["x"]}}})["made"]
    assert row["description"] == "built from debian:12"
    assert row["image"] == "debian:12 + 1 package(s)"


def test_8_1_168_no_own_ceilings(shown):
    row = shown({"plain": "python:3.12-slim"}, mem_limit="2g", cpus=1.5)["plain"]
    assert (row["mem_limit"], row["cpus"], row["network_mode"]) == ("2g", 1.5, "none")


def test_8_1_174_176_the_default_allowlist(start):
    told = start(runtimes=None).request("GET", "/policy").json()
    rows = {row["alias"]: row for row in told["runtimes"]}
    assert told["default_runtime"] == "coding"
    assert {alias: row["builds"] for alias, row in rows.items()} == {"coding": True, "python": False, "node": False}
    assert {alias: row["network_mode"] for alias, row in rows.items()} == {"coding": "bridge", "python": "none", "node": "none"}
    assert rows["coding"]["image"] == "python:3.12-slim + 0 package(s)"
    assert rows["python"]["mem_limit"] == told["mem_limit"] == "1g"
    assert all(row["description"] for row in rows.values())
