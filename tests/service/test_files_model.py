"""Random edits, writes and reads through both doors agree with a model in memory (issue 5: property-based, seeded).

The nine operations and `run` go through the agent, `files/*` through the host's directory; both see one tree."""

import base64
import os
import random
import urllib.parse

FILES = ["a.txt", "b.md", "d/c.py", "d/e/f.txt", " x  y.txt", "é.txt", "d/.hidden.md", "raw.bin"]
DIRECTORIES = ["d", "d/e", "g"]
PIECES = ["a", "b", "ab", "\n", "\r\n", "é", "€", " ", "xyz", "\t", "x\n", "\r", "\u2028", "\U0001f980"]
LARGE = 300_000


def parents(path):
    return {path[:i] for i, char in enumerate(path) if char == "/"}


def edited(text, old, new, everywhere):
    """(text, occurrences) as contract 3.6 and "Decided" 11 say; None where `old` is there more than once."""
    found = text.count(old)
    if found == 0 and "\n" in old and "\n" in text and text.count("\n") == text.count("\r\n"):
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        found = text.count(old)
    if found > 1 and not everywhere:
        return None, found
    return text.replace(old, new), found


class Model:
    """What the workspace should hold, and steps that are taken there and here alike."""

    def __init__(self, session, connection, seed):
        self.session = session
        self.connection = connection
        self.random = random.Random(seed)
        self.files = {}
        self.directories = set()

    # Asking ----------------------------------------------------------------------------------------------------------

    def op(self, name, **body):
        return self.session.op(name, self.connection, **body)

    def native(self, op, path, content=None):
        where = f"/sessions/{self.session.id}/files/{op}"
        if op == "write":
            where += "?" + urllib.parse.urlencode({"path": f"/workspace/{path}"})
            return self.connection.request("POST", where, content, {"Content-Type": "application/octet-stream"})
        return self.connection.request("POST", where, {"path": f"/workspace/{path}"})

    def run(self, *argv):
        answer = self.session.run(list(argv), connection=self.connection)
        assert answer["exit_code"] == 0, answer
        return answer["stdout"]

    # Choosing ----------------------------------------------------------------------------------------------------------

    def text(self, most):
        size = self.random.randrange(most + 1)
        return "".join(self.random.choice(PIECES) for _ in range(size))

    def path(self):
        return self.random.choice(FILES)

    def text_path(self):
        return self.random.choice([path for path in FILES if path != "raw.bin"])

    def content(self, path):
        if path == "raw.bin":
            return self.random.randbytes(self.random.randrange(400))
        if self.random.randrange(200) == 0:
            return self.text(20).encode() + b"long line\n" * (LARGE // 10)
        return self.text(60).encode()

    def made(self, path, content):
        self.files[path] = content
        self.directories |= parents(path)

    def gone(self, path):
        """Forgets a file, or a directory and all in it."""
        below = path + "/"
        self.files = {name: data for name, data in self.files.items() if name != path and not name.startswith(below)}
        self.directories = {name for name in self.directories if name != path and not name.startswith(below)}

    # Changing ----------------------------------------------------------------------------------------------------------

    def write(self):
        path = self.path()
        content = self.content(path)
        assert self.op("write", path=path, content_b64=base64.b64encode(content).decode()) == {
            "path": f"/workspace/{path}", "error": None}
        self.made(path, content)

    def write_natively(self):
        path = self.path()
        content = self.content(path)
        answer = self.native("write", path, content)
        assert (answer.status, answer.body) == (204, b""), answer
        self.made(path, content)

    def edit(self):
        path = self.text_path()
        text = self.files.get(path, b"").decode()
        old, new, everywhere = self.text(2) + "a", self.text(6), self.random.random() < 0.5
        if text and self.random.randrange(4):
            start = self.random.randrange(len(text))
            old = text[start:start + 1 + self.random.randrange(12)]
        answer = self.op("edit", path=path, old_string=old, new_string=new, replace_all=everywhere)
        if path not in self.files:
            assert answer["error"] == f"File '{path}' not found", answer
            return
        after, found = edited(text, old, new, everywhere)
        if found == 0:
            assert answer["error"] == f"String '{old}' not found in file", answer
        elif after is None:
            assert answer["error"].startswith(f"String '{old}' found {found} times."), answer
        else:
            assert (answer["error"], answer["occurrences"]) == (None, found), answer
            self.files[path] = after.encode()

    def remove_natively(self):
        path = self.random.choice(FILES + DIRECTORIES[1:])
        answer = self.native("remove", path)
        there = path in self.files or path in self.directories
        assert answer.status == (204 if there else 404), answer
        self.gone(path)

    def make_directory(self):
        path = self.random.choice(DIRECTORIES)
        assert self.native("mkdir", path).status == 204
        self.directories |= {path} | parents(path)

    def remove_by_a_command(self):
        path = self.random.choice(FILES + DIRECTORIES)
        self.run("rm", "-rf", path)
        self.gone(path)

    def move_by_a_command(self):
        source, target = self.text_path(), self.text_path()
        if source in self.files and source != target and parents(target) <= self.directories:
            self.run("mv", "-T", source, target)
            self.files[target] = self.files.pop(source)

    def append_by_a_command(self):
        path, text = self.text_path(), self.text(10)
        if path in self.files:
            self.run("sh", "-c", 'printf %s "$2" >>"$1"', "sh", path, text)
            self.files[path] += text.encode()

    # Looking -----------------------------------------------------------------------------------------------------------

    def read(self):
        path = self.text_path()
        offset, limit = self.random.choice([(0, 2000), (0, 1), (1, 3), (self.random.randrange(40), 5)])
        got = self.op("read", path=path, offset=offset, limit=limit)["content"]
        lines = self.files.get(path, b"").decode().splitlines()
        expected = "\n".join(lines[offset:offset + limit])
        if path not in self.files:
            expected = f"Error: File '{path}' not found"
        elif offset >= len(lines):
            expected = "[End of file]"
        elif len(lines) > offset + limit:
            expected += (f"\n\n[... {len(lines) - offset - limit} more lines. "
                         f"Use offset={offset + limit} to read more.]")
        assert got == expected, (path, offset, limit, self.files.get(path))

    def read_bytes(self):
        path = self.path()
        got = base64.b64decode(self.op("read_bytes", path=path)["content_b64"])
        assert got == self.files.get(path, b""), path

    def read_natively(self):
        path = self.path()
        answer = self.native("read", path)
        if path in self.files:
            assert (answer.status, answer.body) == (200, self.files[path]), path
        else:
            assert answer.status == 404 and answer.detail["error"] == "FileNotFoundError", answer

    def read_by_a_command(self):
        path = self.text_path()
        if path in self.files and len(self.files[path]) < 10_000:
            assert self.run("cat", path) == self.files[path].decode()

    def exists(self):
        path = self.random.choice(FILES + DIRECTORIES)
        assert self.op("exists", path=path) == {"exists": path in self.files}

    def stat_natively(self):
        path = self.random.choice(FILES + DIRECTORIES)
        answer = self.native("stat", path)
        if path in self.files or path in self.directories:
            size = len(self.files[path]) if path in self.files else None
            assert answer.json() == {"name": path.rsplit("/", 1)[-1], "path": f"/workspace/{path}",
                                     "is_dir": path in self.directories, "size": size, "modified_at": None}
        else:
            assert answer.status == 404, answer

    def children(self, directory):
        """(name, is a directory, its size) of what is directly in a directory, by name."""
        lead = directory + "/" if directory else ""
        names = [name for name in [*self.files, *self.directories]
                 if name.startswith(lead) and "/" not in name[len(lead):]]
        return sorted((name[len(lead):], name in self.directories, len(self.files.get(name, b""))) for name in names)

    def list(self):
        directory = self.random.choice(["", *DIRECTORIES])
        rows = self.op("ls", path=directory or ".")
        expected = self.children(directory) if not directory or directory in self.directories else []
        expected.sort(key=lambda row: not row[1])
        assert [(row["name"], row["is_dir"]) for row in rows] == [row[:2] for row in expected]
        assert [row["size"] for row in rows if not row["is_dir"]] == [row[2] for row in expected if not row[1]]

    def list_natively(self):
        directory = self.random.choice(["", *DIRECTORIES])
        answer = self.native("list", directory)
        if directory and directory not in self.directories:
            assert answer.status == 404, answer
            return
        got = [(row["name"], row["is_dir"], row["size"] or 0) for row in answer.json()]
        assert got == self.children(directory)

    def find(self):
        pattern, ending = self.random.choice([("*.txt", ".txt"), ("**/*.md", ".md"), ("*", "")])
        got = [row["path"] for row in self.op("glob", pattern=pattern)]
        assert got == sorted(path for path in self.files if path.endswith(ending))

    def search(self):
        needle = self.random.choice(["xyz", "ab", "é", "€ ", "long line"])
        answer = self.op("grep", pattern=needle, glob="*.txt", ignore_hidden=False)
        assert answer["error"] is None, answer
        expected = set()
        for path, content in self.files.items():
            if path.endswith(".txt"):
                rows = content.decode().split("\n")
                expected |= {(f"./{path}", i) for i, row in enumerate(rows, 1) if needle in row}
        got = {("./" + row["path"].removeprefix("./"), row["line_number"]) for row in answer["matches"]}
        if answer.get("truncated"):
            assert got <= expected
        else:
            assert got == expected, needle

    STEPS = ([write, write_natively, edit, edit, edit, read, read_bytes, read_natively] * 6
             + [exists, stat_natively, list, list_natively, find, search, make_directory] * 2
             + [remove_natively, remove_by_a_command, move_by_a_command, append_by_a_command, read_by_a_command])

    def step(self):
        self.random.choice(self.STEPS)(self)


def tree_of(workspace):
    """What lies in a directory of the host, as the model keeps it."""
    files, directories = {}, set()
    for where, below, names in os.walk(workspace):
        for name in below:
            directories.add(str((workspace / where / name).relative_to(workspace)))
        for name in names:
            path = workspace / where / name
            files[str(path.relative_to(workspace))] = path.read_bytes()
    return files, directories


def test_random_steps_through_both_doors_agree_with_a_model(services, tmp_path_factory, seed, long):
    root = tmp_path_factory.mktemp("ws")
    service = services(workspace_root=root, default_runtime="box")
    steps = 100_000 if long else 3000
    with service.open() as session, session.connect() as connection:
        model = Model(session, connection, seed)
        workspace = root / session.id / "workspace"
        for number in range(steps):
            try:
                model.step()
            except Exception as problem:
                raise AssertionError(f"seed {seed}, step {number}: {problem}") from problem
            if number % 500 == 0:
                assert tree_of(workspace) == (model.files, model.directories), f"seed {seed}, step {number}"
        # The host sees the same, and no temporary file.
        assert tree_of(workspace) == (model.files, model.directories)
