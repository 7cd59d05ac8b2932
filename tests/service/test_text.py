"""Contract 3.3 (read): results, lines, decoding, PDF; 11.6 and 11.8."""

import shutil

import pytest


def make_pdf(pages, info=None):
    """A PDF with the given lines on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"",
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    kids = []
    for lines in pages:
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
                       b"/Contents %d 0 R >>" % (len(objects) + 2))
        body = b"BT /F1 12 Tf 72 720 Td 14 TL\n" + b"".join(b"(%s) Tj T*\n" % line.encode("cp1252") for line in lines)
        objects.append(b"<< /Length %d >>\nstream\n%sET\nendstream" % (len(body) + 2, body))
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} >>".encode()
    trailer = b""
    if info:
        objects.append(b"<< " + b" ".join(b"/%s (%s)" % (k.encode(), v.encode()) for k, v in info.items()) + b" >>")
        trailer = b" /Info %d 0 R" % len(objects)
    out, table = b"%PDF-1.4\n", b""
    for number, body in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = len(objects) + 1
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size, table, size, trailer, len(out))


@pytest.fixture(scope="module")
def session(service):
    with service.open() as session:
        yield session


def shown(session, name, data, **body):
    session.put(name, data)
    return session.read(name, **body)


def test_3_3_1_the_final_newline_goes(session):
    assert shown(session, "k", "kept\n") == "kept"
    assert shown(session, "k", "kept") == "kept"
    assert shown(session, "k", "a\n\n") == "a\n"
    assert shown(session, "k", "\n") == ""


def test_3_3_1_slices(session):
    session.put("five", "1\n2\n3\n4\n5\n")
    assert session.read("five", offset=1, limit=2) == "2\n3\n\n[... 2 more lines. Use offset=3 to read more.]"
    assert session.read("five", offset=3, limit=2) == "4\n5"
    assert session.read("five", offset=4) == "5"
    assert session.read("five", offset=5) == "[End of file]"
    assert session.read("five", offset=10**18, limit=10**18) == "[End of file]"
    lines = "".join(f"{i}\n" for i in range(2003))
    assert shown(session, "long", lines).endswith("\n1999\n\n[... 3 more lines. Use offset=2000 to read more.]")


def test_11_8_an_empty_file_is_at_its_end(session):
    for name in ("e", "e.txt", "e.pdf", "e.bin"):
        assert shown(session, name, "") == "[End of file]"


def test_3_3_1_missing_and_what_is_no_file(session):
    assert session.read("no/such") == "Error: File 'no/such' not found"
    session.sh("mkdir -p dir/sub; echo x > dir/f; mkfifo pipe; ln -s nowhere dangling; ln -s loop loop")
    for path in ("dir", "dir/sub", "pipe", "loop", "/dev/null", "/dev/zero"):
        content = session.read(path)
        assert content.startswith(f"Error: File '{path}' not found: ") and "\n" not in content, content
    assert session.read("dir/f/x") == "Error: File 'dir/f/x' not found"
    assert session.read("dangling") == "Error: File 'dangling' not found"


def test_3_3_1_over_the_limit(services):
    with services(max_read_bytes=1024).open() as session:
        session.put("ten", "x" * 10_000)
        content = session.read("ten")
        assert content.startswith("[Error: File is 10000 bytes, over the 1024-byte read limit. ")
        assert "execute()" in content and "sed -n" in content and content.endswith("]")
        assert shown(session, "exact", "x" * 1024) == "x" * 1024
        assert shown(session, "over", "x" * 1025).startswith("[Error: File is 1025 bytes, ")
        assert session.read("/proc/kallsyms").startswith("[Error: File exceeds the 1024-byte read limit. ")
        assert session.op("read_bytes", path="ten") == {"content_b64": ""}


def test_3_3_2_every_end_of_line(session):
    ends = ["\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
    text = "".join(f"{i}{end}" for i, end in enumerate(ends))
    assert shown(session, "ends", text) == "\n".join(str(i) for i in range(len(ends)))
    assert shown(session, "not", "a\x1bb\x1fc\u200bd") == "a\x1bb\x1fc\u200bd"


def test_11_6_utf8_first(session):
    for text in ("print('é')", "10€", "a – b", "ü", "日本語", "naïve ½"):
        for name in ("s.py", "s.dat", "s"):
            assert shown(session, name, text) == text
    assert shown(session, "bom.txt", b"\xef\xbb\xbfhi") == "hi"
    assert shown(session, "bom", b"\xef\xbb\xbfhi") == "hi"


@pytest.mark.parametrize("encoding, text", [
    ("latin-1", "Où est le garçon? Il a été à l'école élémentaire, déjà. "),
    ("cp1252", "“Smart” – quotes for 10 €… and dashes — here. "),
    ("cp1251", "Привет, как дела? Всё хорошо. "), ("koi8-r", "Привет, как дела? Всё хорошо. "),
    ("gbk", "你好，世界。这是一个测试文件。"), ("big5", "你好，世界。這是一個測試檔案。"),
    ("shift_jis", "こんにちは世界。これはテストです。"), ("euc_jp", "こんにちは世界。これはテストです。"),
    ("euc_kr", "안녕하세요 세계. 이것은 테스트 파일입니다."),
    ("iso8859-7", "Καλημέρα κόσμε, τι κάνεις σήμερα; "), ("utf-16", "hello é 日本"), ("utf-32", "hello é 日本")])
def test_3_3_3_legacy_encodings(session, encoding, text):
    for name in ("legacy.txt", "legacy"):
        assert shown(session, name, (text * 5).encode(encoding)) == (text * 5).rstrip("\n")


def test_3_3_3_short_western_text(session):
    assert shown(session, "w.txt", b"caf\xe9\n") == "café"
    assert shown(session, "w", b"M\xfcller") == "Müller"


def test_3_3_3_utf8_with_a_fault_stays_utf8(session):
    line = "你好，世界。\n".encode()
    assert shown(session, "u.log", line * 50 + b"\xff\n" + line * 50).split("\n")[50] == "\ufffd"


def test_3_3_3_binary_of_unknown_type(session):
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 2
    assert shown(session, "p.png", picture) == "[Error: [Binary File]]"
    assert shown(session, "p", picture) == "[Error: [Binary File]]"
    assert shown(session, "prog", b"\x7fELF\2\1\1\0" + bytes(range(128, 256))) == "[Error: [Binary File]]"
    assert session.read_bytes("p.png") == picture
    for name in ("p.txt", "p.py", "p.PY"):
        assert shown(session, name, picture).startswith("\x89PNG\n\x1a\n\0\0\0\nIHDR")
    assert shown(session, "nul", b"a\0b\n") == "a\0b"


def test_3_3_3_pdf(session):
    assert shutil.which("pdftotext"), "scripts/setup run installs poppler-utils"
    data = make_pdf([["Hello  world", "exam-", "ple line \\(two\\)"], [], ["Third é"]],
                    {"Title": "T & <x>", "Author": "Ann", "Subject": "S", "Producer": "P"})
    assert shown(session, "a.pdf", data) == (
        "Title: T & <x>\nAuthor: Ann\nSubject: S\n\n--- Page 1 ---\nHello world\nexample line (two)\n\n"
        "--- Page 3 ---\nThird é")
    assert session.read("a.pdf", offset=4, limit=1) == (
        "--- Page 1 ---\n\n[... 5 more lines. Use offset=5 to read more.]")
    assert shown(session, "b.PDF", make_pdf([["one"]])) == "--- Page 1 ---\none"
    event = session.events()["events"][-1]
    assert (event["op"], event["target"], event["ok"], event["detail"]) == ("read", "b.PDF", True, "18 chars")


def test_3_3_3_pdf_that_cannot_be_read(session):
    assert shown(session, "c.pdf", make_pdf([])) == "[Error: Failed to parse PDF: the PDF contains no pages]"
    assert shown(session, "d.pdf", make_pdf([[], []])) == (
        "[Error: Failed to parse PDF: the PDF has no extractable text]")
    for data in (b"%PDF-1.4 garbage", b"no PDF", b"%PDF", bytes(range(256)) * 10):
        content = shown(session, "e.pdf", data)
        assert content.startswith("[Error: Failed to parse PDF: ") and content.endswith("]") and "\n" not in content
    assert not session.events()["events"][-1]["ok"]


def test_the_event_counts_characters(session):
    shown(session, "chars.txt", "é日😀")
    assert session.events()["events"][-1]["detail"] == "3 chars"
