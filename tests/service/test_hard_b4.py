"""docs/hard-cases.md, B4: shells, input, environment, images."""

import pytest


@pytest.mark.row("B4-02")
def test_b4_02_a_failing_search_is_an_error_and_no_match(shared):
    answer = shared.op("grep", pattern="x", path="no/such/directory")
    assert answer["matches"] == [] and answer["error"].startswith("Error: ")


@pytest.mark.row("B4-03")
def test_b4_03_the_work_directory_survives_a_failed_rmdir(session):
    session.put("kept", "x")
    assert session.exec("rmdir /workspace; pwd")["output"].endswith("/workspace\n")
    assert session.sh("pwd") == "/workspace\n" and session.names(".") == ["kept"]


@pytest.mark.row("B4-05")
def test_b4_05_files_without_a_shell_or_any_tool(service):
    with service.open(runtime="scratch") as session:
        assert session.exec("true")["exit_code"] == 127
        session.put("d/a.py", "x = 1\nneedle\n")
        assert session.read("d/a.py") == "x = 1\nneedle"
        assert session.read_bytes("d/a.py") == b"x = 1\nneedle\n"
        assert session.edit("d/a.py", "x = 1", "x = 2")["occurrences"] == 1
        assert session.exists("d/a.py") and not session.exists("d")
        assert session.names("d") == ["a.py"] and "tool" in session.names("/")
        assert session.glob("**/*.py") == ["d/a.py"]
        assert session.grep("needle") == [("./d/a.py", 2, "needle")]


@pytest.mark.row("B4-09")
@pytest.mark.parametrize("command", ["cat", "grep x", "read a; echo $?", "sort", "sh"])
def test_b4_09_input_is_at_its_end(shared, command):
    result = shared.exec(command, timeout=10)
    assert not result["timed_out"] and result["duration_ms"] < 9_000


@pytest.mark.row("B4-10")
def test_b4_10_set_e_ends_its_own_command_only(shared):
    assert shared.exec("set -e; false; echo never")["output"] == ""
    assert shared.sh("echo ok") == "ok\n"


@pytest.mark.row("B4-12")
def test_b4_12_code_of_many_lines_is_one_argument(shared):
    code = "a=1\n\t$HOME `id` \"$(x)\" '\"' \\n \\\\ é\n"
    assert shared.run(["printf", "%s", code])["stdout"] == code


@pytest.mark.row("B4-13")
def test_b4_13_here_documents(shared):
    assert shared.sh("cat <<'E'\nit's $x `y` \"z\"\nE\necho after; cat <<F\n$((1 + 1))\nF") == (
        "it's $x `y` \"z\"\nafter\n2\n")


@pytest.mark.row("B4-14")
def test_b4_14_values_of_the_environment_are_data(shared):
    value = "x;touch /workspace/p $(id)\n=y=`z`"
    assert shared.run(["sh", "-c", "printf %s \"$A\""], env={"A": value})["stdout"] == value
    assert not shared.exists("p")


@pytest.mark.row("B4-15")
def test_b4_15_literal_without_a_shell_expanded_with_one(session):
    session.put("f1", "")
    assert session.run(["echo", "$HOME", "~", "*"])["stdout"] == "$HOME ~ *\n"
    assert session.sh("X=v; echo $X f*") == "v f1\n"


@pytest.mark.row("B4-16")
def test_b4_16_an_argument_with_a_blank_is_one(service):
    with service.open(runtime="scratch") as session:
        assert session.run(["/tool", "args", "--x y", ""])["stdout"] == "[args]\n[--x y]\n[]\n"


@pytest.mark.row("B4-17")
def test_b4_17_no_login_shell_changes_the_path(service):
    with service.open(runtime="box") as session:
        before = session.sh("echo $PATH")
        session.sh("mkdir -p /etc; echo 'export PATH=/changed' > /etc/profile")
        assert session.sh("echo $PATH") == before


@pytest.mark.row("B4-18")
def test_b4_18_other_shells_and_interactive_ones(service, shared):
    with service.open(runtime="box") as session:
        assert session.run(["ash", "-c", "echo 1"], timeout=10)["stdout"] == "1\n"
    if shared.exec("command -v bash")["exit_code"] == 0:
        result = shared.run(["bash", "-ic", "echo 1"], timeout=20)
        assert (result["stdout"], result["timed_out"]) == ("1\n", False)


@pytest.mark.row("B4-19")
def test_b4_19_a_script_with_carriage_returns_is_kept_and_fails_visibly(session):
    script = b"#!/bin/sh\r\necho hi\r\n"
    session.put("s", script)
    assert session.read_bytes("s") == script
    result = session.exec("chmod +x s; ./s")
    assert result["exit_code"] in (126, 127) and result["output"] != ""
