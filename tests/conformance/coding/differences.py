"""Where this service answers the coding task otherwise than the reference, on purpose: step or file -> (ours, theirs, why).
docs/migrating.md tells the same to people."""

EMPTY = "the reference can't tell an empty file from a missing one (contract 11.8)"
WORDS = 'the same error in other words, and ours names the path'
ROOT = "the reference leaves out hidden names, and takes its own root, '.', for one (contract 9.1.1)"
ONE = 'GNU grep leaves the name out of what it prints for a single file, and the reference then reads no match'
LINK = 'the reference copies the link in place of what it points to, and finds no file (contract 9.1.20; decided: through links)'
MODE = 'an edit keeps the mode of the file; the reference makes it 0644 (decided: an existing file keeps its mode)'
TMP = 'the reference copies below the file system in memory that commands see at /tmp (contract 11.9)'
PUT = 'the reference puts the file in the place of the directory, with everything that was in it (N16.31)'
NAMES = 'a link is listed by its plain name (contract 3.8); the directory is there still, where the reference has lost it'
SHELL = "the word is the reference's own shell's, which waits for the command; here none does: the exit status tells the signal"

TOLD = {
    'g1': {
        'read nothing': (
            '[End of file]',
            "Error: File 'calc/__init__.py' not found",
            EMPTY),
        'read a directory': (
            "Error: File 'calc' not found: Is a directory",
            "Error: File 'calc' not found",
            WORDS),
        'search files': (
            "Files containing 'def ':\n  ./calc/core.py\n  ./tests/test_core.py",
            "No matches for 'def '",
            ROOT),
        'search lines': (
            "Matches for 'a - b':\n  ./calc/core.py:5:     return a - b",
            "No matches for 'a - b'",
            ROOT),
        'search count': (
            "Found 1111 match(es) for 'line 1'",
            "No matches for 'line 1'",
            ROOT),
        'search by name': (
            "Matches for 'def':\n"
            '  ./tests/test_core.py:7:     def test_add(self):\n'
            '  ./tests/test_core.py:10:     def test_mean(self):',
            "No matches for 'def'",
            ROOT),
        'search one file': (
            "Matches for 'total':\n"
            '  calc/core.py:9:     total = 0\n'
            '  calc/core.py:11:         total = add(total, value)\n'
            '  calc/core.py:12:     return total / len(values)',
            "No matches for 'total'",
            ONE),
        'search missing': (
            'Error: nowhere: No such file or directory',
            'Error: grep: nowhere: No such file or directory\n',
            WORDS),
        'edit what is there twice': (
            "Error: String 'total' found 4 times. Pass replace_all=True to replace each, or more context to single one "
            'out.',
            "Error: String 'total' found 4 times. Use replace_all=True to replace all, or provide more context.",
            WORDS),
        'read a link': (
            '"""Arithmetic."""\n\n\n[... 11 more lines. Use offset=2 to read more.]',
            "Error: File 'link.py' not found",
            LINK),
        'edit through a link': (
            'Edited /workspace/link.py: replaced 1 occurrence(s)',
            "Error: File 'link.py' not found",
            LINK),
        'the link is one still': (
            'calc/core.py\n# less\n',
            'calc/core.py\n# more\n',
            LINK),
        'one still': (
            'ran again\n755\n644\n',
            'sh: 1: ./run.sh: Permission denied\n644\n644\n',
            MODE),
        'seen by a command': (
            'in memory\n',
            'Command failed (exit code 1):\ncat: /tmp/outside.txt: No such file or directory\n',
            TMP),
        'write to a directory': (
            'Error: Failed to write file: Is a directory',
            'Wrote 1 lines to /workspace/data',
            PUT),
        'the directory is one still': (
            'Contents of data:\n  dos.txt (15 bytes)\n  lines.txt (28890 bytes)',
            "Directory 'data' is empty or does not exist",
            PUT),
        'write below a file': (
            'Error: Failed to create directory: Not a directory',
            "Error: Failed to create directory: mkdir: cannot create directory '/workspace/setup.cfg': File exists\n",
            WORDS),
        'list at the end': (
            'Contents of .:\n'
            '  .config/\n'
            '  .git/\n'
            '  calc/\n'
            '  data/\n'
            '  notes/\n'
            '  tests/\n'
            '  dangling (7 bytes)\n'
            '  later.txt (6 bytes)\n'
            '  link.py (12 bytes)\n'
            '  run.sh (25 bytes)\n'
            '  setup.cfg (35 bytes)',
            'Contents of .:\n'
            '  .config/\n'
            '  .git/\n'
            '  calc/\n'
            '  notes/\n'
            '  tests/\n'
            '  dangling -> nowhere (7 bytes)\n'
            '  data (1 bytes)\n'
            '  later.txt (6 bytes)\n'
            '  link.py -> calc/core.py (12 bytes)\n'
            '  run.sh (25 bytes)\n'
            '  setup.cfg (35 bytes)',
            NAMES),
    },
    'g2': {
        'a signal': (
            'Command failed (exit code 137):\n',
            'Command failed (exit code 137):\nKilled\n',
            SHELL),
    },
    'g3': {
        'read a directory': (
            "Error: Is a directory: '/workspace/calc'",
            'Error: calc is a directory',
            WORDS),
        'a signal': (
            'Command failed (exit code 137):\n',
            'Command failed (exit code 137):\nKilled\n',
            SHELL),
        'write to a directory': (
            "Error: Failed to write 'data': Is a directory: '/workspace/data'",
            "Error: Failed to write 'data': data is a directory",
            WORDS),
        'write below a file': (
            "Error: Failed to write 'setup.cfg/below': Not a directory: '/workspace/setup.cfg/below'",
            "Error: Failed to write 'setup.cfg/below': [Errno 20] Not a directory: 'setup.cfg'",
            WORDS),
    },
}

FILES = {
    'g1': {
        'data': (
            ['40755', 'directory'],
            ['100644', '2d711642b726'],
            PUT),
        'run.sh': (
            ['100755', 'a04c9d5cb4ff'],
            ['100644', 'a04c9d5cb4ff'],
            MODE),
        'calc/core.py': (
            ['100644', '554684642259'],
            ['100644', '2bbffe849c64'],
            LINK),
        'data/dos.txt': (
            ['100644', '525fdeb7a250'],
            None,
            PUT),
        'data/lines.txt': (
            ['100644', '378417bfa37d'],
            None,
            PUT),
    },
    'g2': {},
    'g3': {},
}
