"""A program outside this tree, compiled against an installed one in both ways that its users have."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
PROGRAM = Path(__file__).resolve().parent / "program"
PATIENCE = 600  # s, of one step


def step(*command, cwd=None, env=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{' '.join(str(part) for part in command)}:\n{done.stdout[-6000:]}"
    return done.stdout


def cached(name):
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    assert found, name
    return found.group(1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An installed tree that was moved afterwards: nothing in it may name where it was made."""
    first = tmp_path_factory.mktemp("installed") / "first"
    step("cmake", "--install", BUILD, "--prefix", first)
    tree = first.rename(first.parent / "tree")
    for name in ("bin/sandboxd", "libexec/sandboxd/sandboxd-agent", "include/sandboxd/app.hpp"):
        assert (tree / name).is_file(), name
    yield tree
    shutil.rmtree(tree)


def with_cmake(installed, where):
    step("cmake", "-S", PROGRAM, "-B", where, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}",
         f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}")
    step("cmake", "--build", where)


def with_pkg_config(installed, where):
    found = list(installed.rglob("sandboxd.pc"))
    assert len(found) == 1
    flags = step("pkg-config", "--cflags", "--libs", "sandboxd",
                 env={**os.environ, "PKG_CONFIG_PATH": str(found[0].parent)}).split()
    step(cached("CMAKE_CXX_COMPILER"), PROGRAM / "main.cpp", "-o", where / "embedder", *flags)


class Embedder:
    """The program at work."""

    def __init__(self, program, state):
        self.process = subprocess.Popen([program, state, "secret"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.said = self.process.stdout.readline()
        self.url = "http://" + self.said.split()[-1]

    def ask(self, method, path, body=None, token="secret"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"X-Sandbox-Token": token,
                                                                 "Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=120)


@pytest.mark.parametrize("way", [with_cmake, with_pkg_config])
def test_a_program_brings_sandboxes_of_its_own(installed, tmp_path, way):
    way(installed, tmp_path)
    embedder = Embedder(tmp_path / "embedder", tmp_path / "state")
    try:
        assert re.fullmatch(r"0\.1\.0 listens on 127\.0\.0\.1:\d+\n", embedder.said), embedder.said
        status, opened = embedder.ask("POST", "/sessions", {"session_id": "mine"})
        assert (status, opened["session"]["runtime"]) == (200, "memory")
        own = opened["token"]
        assert embedder.ask("POST", "/sessions/mine/exec", {"command": "one"}, own)[1]["output"] == "one\n"
        status, second = embedder.ask("POST", "/sessions/mine/exec", {"command": "two"}, own)
        assert (status, second["output"], second["exit_code"]) == (200, "one\ntwo\n", 0)
        run = {"argv": ["one"], "run_id": "0" * 32}
        assert embedder.ask("POST", "/sessions/mine/run", run, own) == (
            501, {"detail": "memory of what was said cannot run commands"})
        assert embedder.ask("GET", "/policy")[1]["not_enforced"] == ["memories hold nothing back"]
        assert embedder.ask("GET", "/openapi.json")[1]["info"]["title"] == "sandboxd"
    finally:
        assert embedder.end() == 0
    assert sorted(os.listdir(tmp_path / "state")) != []


def test_settings_that_are_missing_are_named(installed, tmp_path):
    with_pkg_config(installed, tmp_path)
    done = subprocess.run([tmp_path / "embedder", tmp_path / "state"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=90)
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", "invalid: token: must not be empty: clients are told apart by it\n")
    assert not (tmp_path / "state").exists()


def test_the_installed_program_finds_its_agent(installed):
    said = step(installed / "bin/sandboxd", "--version")
    assert said.startswith("sandboxd 0.1.0"), said


def test_the_examples_of_the_documentation_compile(tmp_path):
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.S)
    assert len(blocks) == 2
    syntax_is_right(tmp_path / "clients.cpp", "\n".join(blocks))
    [block] = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/embedding.md").read_text(), re.S)
    # The builder's class is left to the reader there.
    whole = block.replace("std::make_shared<my_builder>()", "std::shared_ptr<sandboxd::sandbox_builder>()")
    assert whole != block
    syntax_is_right(tmp_path / "embedding.cpp", whole)


def syntax_is_right(source, text):
    source.write_text(text)
    done = subprocess.run(["clang++-19", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           "-DBOOST_ASIO_SEPARATE_COMPILATION", "-I", ROOT / "include", source],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
