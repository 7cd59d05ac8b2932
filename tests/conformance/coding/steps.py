"""The task: a small package is written, its tests fail, the fault is searched, edited and tested again; and what a model gets
wrong on its way. Each step: its name, the tool, the arguments."""

CORE = '''"""Arithmetic."""


def add(a, b):
    return a - b


def mean(values):
    total = 0
    for value in values:
        total = add(total, value)
    return total / len(values)
'''

TESTS = '''import unittest

from calc.core import add, mean


class Core(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)
'''

UNIT_TESTS = "python3 -B -m unittest -v 2>&1"
GIT = ("export GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z GIT_AUTHOR_NAME=a "
       "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/tmp; ")

STEPS = [
    # Looking around, in nothing.
    ("list nothing", "ls", {"path": "."}),
    ("find nothing", "glob", {"pattern": "**/*.py"}),
    ("search nothing", "grep", {"pattern": "def"}),
    ("where", "execute", {"command": "pwd; id -u; umask; echo $HOME"}),
    # The package.
    ("write core", "write_file", {"path": "calc/core.py", "content": CORE}),
    ("write init", "write_file", {"path": "calc/__init__.py", "content": ""}),
    ("write tests", "write_file", {"path": "tests/test_core.py", "content": TESTS}),
    ("write tests' init", "write_file", {"path": "tests/__init__.py", "content": ""}),
    ("write notes", "write_file", {"path": "notes/über uns.md", "content": "# Ü\n\nwith spaces, ünïcode and\ttabs\n"}),
    ("write absolute", "write_file", {"path": "/workspace/setup.cfg", "content": "[metadata]\nname = calc\n"}),
    ("write hidden", "write_file", {"path": ".config/secret.py", "content": "def hidden(): pass\n"}),
    ("write many lines", "write_file", {"path": "data/lines.txt", "content": "".join(f"line {n}\n" for n in range(3000))}),
    ("write line ends", "write_file", {"path": "data/dos.txt", "content": "one\r\ntwo\r\nthree\r\n"}),
    ("write over", "write_file", {"path": "setup.cfg", "content": "[metadata]\nname = calc\nversion = 1\n"}),
    ("list the root", "ls", {"path": "."}),
    ("list a directory", "ls", {"path": "calc"}),
    ("list absolute", "ls", {"path": "/workspace/notes"}),
    ("list missing", "ls", {"path": "nowhere"}),
    # Its tests, which fail.
    ("test, failing", "execute", {"command": UNIT_TESTS}),
    ("read core", "read_file", {"path": "calc/core.py"}),
    ("read some lines", "read_file", {"path": "data/lines.txt", "offset": 10, "limit": 5}),
    ("read the default of lines", "read_file", {"path": "data/lines.txt"}),
    ("read beyond the end", "read_file", {"path": "calc/core.py", "offset": 500}),
    ("read nothing", "read_file", {"path": "calc/__init__.py"}),
    ("read missing", "read_file", {"path": "calc/missing.py"}),
    ("read a directory", "read_file", {"path": "calc"}),
    ("read unicode", "read_file", {"path": "notes/über uns.md"}),
    ("read line ends", "read_file", {"path": "data/dos.txt"}),
    ("find python", "glob", {"pattern": "**/*.py"}),
    ("find by name", "glob", {"pattern": "*.py", "path": "calc"}),
    ("find in a directory", "glob", {"pattern": "tests/*.py"}),
    ("find none", "glob", {"pattern": "*.rs"}),
    ("search files", "grep", {"pattern": "def "}),
    ("search lines", "grep", {"pattern": "a - b", "output_mode": "content"}),
    ("search count", "grep", {"pattern": "line 1", "output_mode": "count"}),
    ("search an expression", "grep", {"pattern": "^def [a-m]*(", "path": "calc", "output_mode": "content"}),
    ("search by name", "grep", {"pattern": "def", "glob_pattern": "test_*.py", "output_mode": "content"}),
    ("search hidden too", "grep", {"pattern": "hidden", "ignore_hidden": False}),
    ("search without hidden", "grep", {"pattern": "hidden"}),
    ("search one file", "grep", {"pattern": "total", "path": "calc/core.py", "output_mode": "content"}),
    ("search none", "grep", {"pattern": "no such text anywhere"}),
    ("search missing", "grep", {"pattern": "x", "path": "nowhere"}),
    ("search what a shell would take", "grep", {"pattern": "it's; echo $(id) -e"}),
    # The fault is edited, after some tries.
    ("edit what is not there", "edit_file", {"path": "calc/core.py", "old_string": "return a * b", "new_string": "x"}),
    ("edit what is there twice", "edit_file", {"path": "calc/core.py", "old_string": "total", "new_string": "sum"}),
    ("edit missing", "edit_file", {"path": "calc/missing.py", "old_string": "a", "new_string": "b"}),
    ("edit core", "edit_file", {"path": "calc/core.py", "old_string": "return a - b", "new_string": "return a + b"}),
    ("edit all", "edit_file", {"path": "calc/core.py", "old_string": "total", "new_string": "result", "replace_all": True}),
    ("edit unicode", "edit_file", {"path": "notes/über uns.md", "old_string": "ünïcode", "new_string": "plain €"}),
    ("edit line ends", "edit_file", {"path": "data/dos.txt", "old_string": "two", "new_string": "2"}),
    ("edit several lines", "edit_file", {"path": "tests/test_core.py", "old_string": "    def test_mean(self):\n",
                                         "new_string": "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n\n"
                                                       "    def test_mean(self):\n"}),
    ("test, passing", "execute", {"command": UNIT_TESTS}),
    ("read what was edited", "read_file", {"path": "calc/core.py"}),
    ("bytes of line ends", "execute", {"command": "od -c data/dos.txt | head -3"}),
    # What shells do.
    ("commit", "execute", {"command": GIT + "git init -q -b main && git add -A && git commit -qm one && git log --oneline"}),
    ("status after an edit", "execute", {"command": "echo '# more' >>calc/core.py; HOME=/tmp git status --short"}),
    # The reference keeps no order between the streams of one moment.
    ("both streams", "execute", {"command": "echo out; sleep 2; echo err >&2"}),
    ("status", "execute", {"command": "echo before; exit 3"}),
    ("no such program", "execute", {"command": "no-such-program --now"}),
    ("a signal", "execute", {"command": "kill -9 $$"}),
    ("quotes", "execute", {"command": "printf '%s\\n' \"it's\" 'a \"b\"' '$HOME' '\\\\'"}),
    ("several lines", "execute", {"command": "cat <<'END'\none\n  two\nEND\nfor n in 1 2 3; do echo $n; done"}),
    ("standard input is at its end", "execute", {"command": "cat; echo end"}),
    ("no text", "execute", {"command": "printf 'a\\377b\\n'"}),
    ("much output", "execute", {"command": "seq 1 200000 | tr '\\n' ' ' | fold -w 100"}),
    ("a directory does not stay", "execute", {"command": "cd /tmp && pwd"}),
    ("still at the root", "execute", {"command": "pwd"}),
    ("variables do not stay", "execute", {"command": "echo ${LEFT-none}; export LEFT=1"}),
    ("the time is up", "execute", {"command": "echo begun; sleep 60; echo never", "timeout": 4}),
    ("a background process", "execute", {"command": "(sleep 1; echo later >later.txt) >/dev/null 2>&1 & echo started"}),
    ("and its work", "execute", {"command": "for n in 1 2 3 4 5 6 7 8; do [ -e later.txt ] && break; sleep 0.5; done; cat later.txt"}),
    ("a file that a command made", "read_file", {"path": "later.txt"}),
    ("a link", "execute", {"command": "ln -s calc/core.py link.py; ln -s nowhere dangling"}),
    ("read a link", "read_file", {"path": "link.py", "limit": 2}),
    ("read a dangling link", "read_file", {"path": "dangling"}),
    ("edit through a link", "edit_file", {"path": "link.py", "old_string": "# more", "new_string": "# less"}),
    ("the link is one still", "execute", {"command": "readlink link.py; tail -1 calc/core.py"}),
    ("a program", "write_file", {"path": "run.sh", "content": "#!/bin/sh\necho ran\n"}),
    ("made one", "execute", {"command": "chmod 755 run.sh && ./run.sh"}),
    ("edit a program", "edit_file", {"path": "run.sh", "old_string": "ran", "new_string": "ran again"}),
    ("one still", "execute", {"command": "exec 2>&1; ./run.sh; stat -c %a run.sh calc/core.py"}),
    ("write outside", "write_file", {"path": "/tmp/outside.txt", "content": "in memory\n"}),
    ("seen by a command", "execute", {"command": "cat /tmp/outside.txt"}),
    ("read outside", "read_file", {"path": "/tmp/outside.txt"}),
    ("write to a directory", "write_file", {"path": "data", "content": "x"}),
    ("the directory is one still", "ls", {"path": "data"}),
    ("write below a file", "write_file", {"path": "setup.cfg/below", "content": "x"}),
    ("write above the root", "write_file", {"path": "../above.txt", "content": "up\n"}),
    ("read above the root", "read_file", {"path": "../above.txt"}),
    ("list at the end", "ls", {"path": "."}),
]
