"""docs/hard-cases.md, B5: files."""

import json
import random
import threading

import pytest

from harness.wait import in_time

ODD = ["-rf", "a\nb", " lead", "trail ", "*?[x]", "NFC é", "NFD e\u0301", "😀", "..x", "x'; touch p; '"]


@pytest.mark.row("B5-01", "B5-38", "B5-48")
@pytest.mark.parametrize("size", [96 << 10, 97 << 10, 128 << 10, 131 << 10, 5 << 20, 10 << 20])
def test_b5_01_38_48_contents_of_any_size_also_where_no_directory_is(services_large, size):
    data = random.Random(size).randbytes(size)
    services_large.put(f"no/such/{size}/f", data)
    assert services_large.read_bytes(f"no/such/{size}/f") == data
    assert services_large.sh(f"wc -c < no/such/{size}/f").strip() == str(size)


@pytest.fixture(scope="module")
def services_large(services):
    with services(max_read_bytes=64 << 20).open() as session:
        yield session


@pytest.mark.row("B5-48")
@pytest.mark.parametrize("data", [b"-n", b"-e\\n", b"\\c", b"%s", b"$(id)`id`", b"\0", b"'\"\\"])
def test_b5_48_contents_that_a_shell_would_read(session, data):
    session.put("f", data)
    assert session.read_bytes("f") == data


@pytest.mark.row("B5-02", "B5-47")
def test_b5_02_47_directories_are_no_files(session):
    session.put("d/x", "kept")
    for _ in in_time(5):
        assert session.write("d", "x")["error"] and session.write("d/", "x")["error"]
        assert session.read("d").startswith("Error: File 'd' not found")
        assert session.edit("d", "a", "b")["error"]
        assert session.read("missing") == "Error: File 'missing' not found"
    assert session.read("d/x") == "kept"


@pytest.mark.row("B5-03")
def test_b5_03_a_huge_file_is_refused_without_being_loaded(service, session):
    session.sh("truncate -s 100G huge")
    service.reset_peak()
    before = service.rss()
    for _ in in_time(60):
        assert session.read("huge").startswith("[Error: File is 107374182400 bytes, over the ")
        assert session.read_bytes("huge") == b""
        assert "read limit" in session.edit("huge", "a", "b")["error"]
    assert service.peak_rss() - before < 64 << 20


@pytest.mark.row("B5-04")
def test_b5_04_paths_with_the_characters_of_addresses(session):
    for name in ("a&b", "a#b", "a%20b", "a+b", "a b", "a?b=c", "a;b", "a=b"):
        session.put(name, name)
        assert session.read(name) == name
    assert len(session.names(".")) == 8


@pytest.mark.row("B5-05", "B5-06")
def test_b5_05_06_a_mounted_file_system_is_the_one_commands_see(session):
    session.put("/tmp/sub/f", "through the service")
    assert session.sh("cat /tmp/sub/f") == "through the service"
    session.sh("echo by command > /tmp/g; mkdir -p /dev/shm; echo shm > /dev/shm/x")
    assert session.read("/tmp/g") == "by command" and session.read("/dev/shm/x") == "shm"


@pytest.mark.row("B5-07")
def test_b5_07_a_read_only_place_says_so(session):
    answer = session.write("/proc/sys/kernel/hostname", "x")
    assert answer["path"] is None and answer["error"].startswith("Failed to write file: ")
    answer = session.write("/sys/new", "x")
    assert answer["path"] is None and "denied" in answer["error"] or "ead-only" in answer["error"]


@pytest.fixture(scope="module")
def unprivileged(services, images, tmp_path_factory):
    runtime = {"name": "u", "image": images.host_image, "run_as_uid": 1000}
    return services(runtimes=json.dumps({"u": {"runtime": runtime}}), workspace_root=tmp_path_factory.mktemp("ws"))


@pytest.mark.row("B5-08")
def test_b5_08_files_belong_to_the_user_of_the_commands(unprivileged):
    with unprivileged.open() as session:
        session.put("d/f", "one\n")
        assert session.sh("stat -c '%u %a' d d/f; cat d/f; echo two >> d/f") == "1000 755\n1000 644\none\n"
        assert session.edit("d/f", "two", "2")["occurrences"] == 1
        session.sh("echo own > own")
        session.put("own", "written")
        assert session.sh("cat own; stat -c %u own") == "written1000\n"


@pytest.mark.row("B5-10", "B5-40")
def test_b5_10_40_missing_empty_and_unreadable_are_three_answers(unprivileged):
    with unprivileged.open() as session:
        session.put("empty", "")
        session.sh("echo secret > closed; chmod 000 closed")
        assert session.read("missing") == "Error: File 'missing' not found"
        assert session.read("empty") == "[End of file]"
        assert session.read("closed") == "Error: File 'closed' not found: Permission denied"
        assert session.edit("closed", "a", "b")["error"] == "File 'closed' not found: Permission denied"
        assert session.write("/etc/new", "x")["error"] == "Failed to write file: Permission denied"
        assert session.write("/etc/new/x", "x")["error"] == "Failed to create directory: Permission denied"


@pytest.mark.row("B5-14")
def test_b5_14_a_name_of_sixty_characters_of_three_bytes(session):
    session.put("名" * 60, "x")
    assert session.names(".") == ["名" * 60] and session.read("名" * 60) == "x"


@pytest.mark.row("B5-17")
def test_b5_17_the_bytes_and_nothing_around_them(session):
    assert session.read_bytes("/etc/passwd").decode() == session.sh("cat /etc/passwd")


@pytest.mark.row("B5-18")
def test_b5_18_links(session):
    session.sh("mkdir d; echo c > c; ln -s c b; ln -s b a; ln -s ../c d/up; ln -s /workspace/c abs; ln -s no gone")
    for path in ("a", "d/up", "abs"):
        assert session.read(path) == "c" and session.exists(path)
    assert session.read("gone") == "Error: File 'gone' not found" and not session.exists("gone")
    assert session.edit("a", "c", "edited")["occurrences"] == 1
    assert session.sh("cat c; readlink a") == "edited\nb\n"


@pytest.mark.row("B5-19")
def test_b5_19_a_path_that_changes_under_the_feet(session, count):
    session.sh("mkdir -p real; echo inside > real/passwd; "
               "(while :; do ln -sfn /etc d; rm d; mkdir d; echo inside > d/passwd; rm -r d; done) >/dev/null 2>&1 &")
    inside = session.read("/etc/passwd")
    for i in range(count(1000)):
        content = session.read("d/passwd")
        assert content in ("inside", inside, "[End of file]") or content.startswith("Error: File"), content
        session.write(f"d/{i}", "x")
    assert session.read("/etc/passwd") == inside and session.sh("echo alive") == "alive\n"


@pytest.mark.row("B5-21")
def test_b5_21_a_nul_in_a_line_hides_no_match(session):
    session.put("t", "one\nneedle two\nthree\n")
    session.put("n.txt", b"a\0needle\nneedle\n")
    assert ("./t", 2, "needle two") in session.grep("needle")


@pytest.mark.row("B5-22")
def test_b5_22_a_path_that_breaks_out_of_quotes(session):
    name = "x'; touch /tmp/p; '"
    assert session.op("ls", path=name) == [] and session.read(name).startswith("Error: File")
    session.glob(name)
    session.grep(name)
    session.grep("x", glob=name)
    assert not session.exists("/tmp/p")


@pytest.mark.row("B5-23")
def test_b5_23_slashes_and_quotes_in_patterns(session):
    session.put("src/a.py", 'say "$x\n')
    assert session.grep('"$x', glob="*.py") == [("./src/a.py", 1, 'say "$x')]
    assert session.op("grep", pattern='"$x', glob="src/**/*.py")["matches"] == []
    assert session.glob("src/**/*.py", path=".") in ([], ["src/a.py"])


@pytest.mark.row("B5-24")
def test_b5_24_braces_are_not_expanded(session):
    session.put("{a,b}", "x")
    session.put("a", "x")
    for _ in in_time(5):
        assert session.glob("{a,b}" * 30) == []
    assert session.glob("{a,b}") == ["{a,b}"]


@pytest.mark.row("B5-26")
def test_b5_26_very_many_files_are_all_found_or_said_to_be_cut(service, session, count):
    files = count(300_000)
    session.sh(f"mkdir m; cd m; seq {files} | xargs -n 2000 touch", timeout=200)
    service.reset_peak()
    before = service.rss()
    for operation, body in (("ls", {"path": "m"}), ("glob", {"pattern": "*"})):
        answer = session.request("POST", f"/{operation}", body)
        rows = len(answer.json())
        assert rows == files or (answer.headers["X-Sandbox-Truncated"] == "true" and rows > 1000), operation
    assert service.peak_rss() - before < 400 << 20


@pytest.mark.row("B5-27")
def test_b5_27_a_bad_link_spoils_no_listing(session):
    session.sh("mkdir d; cd d; echo needle > good; ln -s nope x; ln -s y y; mkdir closed; chmod 0 closed")
    assert session.names("d") == ["closed", "good", "x", "y"]
    assert session.glob("*", path="d") == ["d/good"]
    assert session.grep("needle", path="d") == [("d/good", 1, "needle")]


@pytest.mark.row("B5-28", "B5-29")
def test_b5_28_29_a_fifo_holds_up_nothing(session):
    session.sh("mkfifo notes.md; echo needle > good")
    for _ in in_time(6):
        assert session.read("notes.md").startswith("Error: File 'notes.md' not found: ")
        assert session.read_bytes("notes.md") == b""
        assert session.edit("notes.md", "a", "b")["error"]
        assert session.write("notes.md", "x")["error"]
        assert not session.exists("notes.md")
        assert session.grep("needle") == [("./good", 1, "needle")]
        assert session.op("grep", pattern="x", path="notes.md")["matches"] == []
    assert session.sh("test -p notes.md && echo fifo") == "fifo\n"


@pytest.mark.row("B5-31")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/random", "/dev/stdin", "/dev/tty", "/dev/null", "/proc/kmsg",
                                  "/proc/self/mem", "/dev/full", "/proc/self/fd/0"])
def test_b5_31_devices_and_endless_files_are_refused(session, path):
    for _ in in_time(5):
        assert session.read(path).startswith(("Error: ", "[Error", "[End of file]"))
        session.read_bytes(path)
        session.edit(path, "a", "b")
        session.op("grep", pattern="x", path=path)


@pytest.mark.row("B5-32")
def test_b5_32_files_without_a_size_have_contents(session):
    assert session.read("/proc/version").startswith("Linux version ")
    assert session.grep("Linux", path="/proc/version")[0][1] == 1


@pytest.mark.row("B5-33")
def test_b5_33_an_edit_of_crlf_changes_the_region_only(session):
    session.put("f", b"a\r\nb\r\nc\r\n")
    assert session.edit("f", "a\nb", "a\nB\nB2")["occurrences"] == 1
    assert session.read_bytes("f") == b"a\r\nB\r\nB2\r\nc\r\n"
    session.put("mixed", b"a\r\nb\nc\r\n")
    assert session.edit("mixed", "a\nb", "x")["error"] == "String 'a\nb' not found in file"
    assert session.edit("mixed", "a\r\nb", "x")["occurrences"] == 1
    assert session.read_bytes("mixed") == b"x\nc\r\n"


@pytest.mark.row("B5-35", "B5-36")
@pytest.mark.parametrize("data", [b"caf\xe9 old \xff\xfe\n", "你好 old\n".encode("gbk"), "日本 old\n".encode("shift_jis"),
                                  b"\xef\xbb\xbfold text\n", "é old\r\n".encode()])
def test_b5_35_36_other_bytes_stay(session, data):
    session.put("f.txt", data)
    assert session.edit("f.txt", "old", "new")["occurrences"] == 1
    assert session.read_bytes("f.txt") == data.replace(b"old", b"new")


@pytest.mark.row("B5-36")
def test_b5_36_utf16_is_refused_not_mangled(session):
    data = "old text".encode("utf-16")
    session.put("f.txt", data)
    assert session.edit("f.txt", "old", "new")["error"] == "String 'old' not found in file"
    assert session.read_bytes("f.txt") == data


@pytest.mark.row("B5-37")
@pytest.mark.parametrize("text", ["a\nb", "a/b", "&", "\\1", "$x", ".*", "^", "\\", "'", "\"", "\\n", "[a", "\t"])
def test_b5_37_texts_of_an_edit_are_literal(session, text):
    session.put("f", f"<{text}>\n")
    assert session.edit("f", text, f"{text}{text}")["occurrences"] == 1
    assert session.read_bytes("f") == f"<{text}{text}>\n".encode()


@pytest.mark.row("B5-39")
def test_b5_39_blank_is_not_empty(session):
    session.put("blank", "\n")
    session.put("window", "x\n" + "\n" * 5 + "y\n")
    assert session.read("blank") == ""
    assert session.read("window", offset=1, limit=5) == "\n" * 4 + "\n\n[... 1 more lines. Use offset=6 to read more.]"


@pytest.mark.row("B5-41")
def test_b5_41_edits_at_once_all_land(session, count):
    lines = 16
    for _ in range(count(50)):
        session.put("f", "".join(f"line {i};\n" for i in range(lines)))
        answers = [None] * lines

        def edit(i):
            answers[i] = session.edit("f" if i % 2 else "./f", f"line {i};", f"LINE {i}; changed")

        threads = [threading.Thread(target=edit, args=(i,)) for i in range(lines)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert [answer["occurrences"] for answer in answers] == [1] * lines
        assert session.read_bytes("f").decode() == "".join(f"LINE {i}; changed\n" for i in range(lines))


@pytest.mark.row("B5-43")
def test_b5_43_what_is_in_the_sandbox_only_is_found(session):
    session.put("/opt/only-here/a.py", "needle\n")
    assert session.glob("*.py", path="/opt/only-here") == ["/opt/only-here/a.py"]
    assert session.grep("needle", path="/opt/only-here") == [("/opt/only-here/a.py", 1, "needle")]


@pytest.mark.row("B5-44")
def test_b5_44_very_deep_trees(session):
    session.sh("i=0; while [ $i -lt 1000 ]; do mkdir -p deep12 && cd -P deep12; i=$((i + 1)); done; "
               "echo needle > bottom.py; cd /workspace; echo needle > top.py", timeout=100)
    for _ in in_time(60):
        assert session.names("deep12") == ["deep12"]
        found = session.glob("*.py")
        assert "top.py" in found and set(found) <= {"top.py", "deep12/" * 1000 + "bottom.py"}
        assert ("./top.py", 1, "needle") in session.grep("needle")
    session.exec("rm -rf deep12", timeout=60)


@pytest.mark.row("B5-45")
def test_b5_45_a_full_file_system_keeps_the_old_file(services):
    service = services(tmpfs_size="8m")
    with service.open() as session:
        session.put("/tmp/f", "old")
        answer = session.write("/tmp/f", b"x" * (10 << 20))
        assert answer["path"] is None and answer["error"] == "Failed to write file: No space left on device"
        assert session.read("/tmp/f") == "old" and session.names("/tmp") == ["f"]


@pytest.mark.row("B5-49")
def test_b5_49_odd_names(session):
    for name in ODD:
        session.put(f"d/{name}", "needle")
    assert session.names("d") == sorted(ODD)
    assert session.glob("*", path="d") == sorted(f"d/{name}" for name in ODD)
    assert sorted(path for path, _, _ in session.grep("needle", path="d", ignore_hidden=False)) == sorted(
        f"d/{name}" for name in ODD)
    assert all(session.exists(f"d/{name}") and session.read(f"d/{name}") == "needle" for name in ODD)


@pytest.mark.row("B5-49")
def test_b5_49_names_that_are_not_utf8_are_listed_as_the_wire_can_carry_them(session):
    session.sh("echo needle > \"$(printf 'x\\200\\377')\"")
    assert session.names(".") == ["x\ufffd\ufffd"] and session.glob("*") == ["x\ufffd\ufffd"]
    assert session.grep("needle") == [("./x\ufffd\ufffd", 1, "needle")]
