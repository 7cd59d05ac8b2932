"""The test suite behind scripts/test: steps with timeouts, their counts, and what the run left behind."""

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import leftovers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "conformance"))
import environments as conformance  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
JOBS = os.environ.get("SANDBOXD_JOBS", "2")
MINUTE = 60
LANES = 4  # of tests from outside, at a time
RELEASE = ["sandboxd", "sandboxd-agent", "sandboxd_library", "client_lines"]
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short"]

HEADER_FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
                "-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_ASIO_NO_DEPRECATED", "-I", "include", "-x", "c++"]


class Tally:
    """Counts of the whole run; safe from several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.failures = []

    def add(self, passed=0, failed=0, skipped=0, failures=()):
        with self.lock:
            self.passed += passed
            self.failed += failed
            self.skipped += skipped
            self.failures.extend(failures)

    def check(self, name, ok, text=""):
        """One check that is a test of its own."""
        self.add(passed=int(ok), failed=int(not ok), failures=[] if ok else [(name, text)])

    def summary(self):
        return f"{self.passed} passed, {self.failed} failed"


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Outcome:
    def __init__(self, status, output, timed_out, seconds):
        self.status = status
        self.output = output
        self.timed_out = timed_out
        self.seconds = seconds

    def tail(self, lines=60):
        text = "\n".join(self.output.splitlines()[-lines:])
        return text + ("\n(stopped: it ran out of time)" if self.timed_out else "")


def run(command, timeout, env=None, show=False):
    """Runs a command in a process group of its own; at the timeout the whole group is killed."""
    started = time.monotonic()
    child = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    timed_out = threading.Event()

    def stop():
        timed_out.set()
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    timer = threading.Timer(timeout, stop)
    timer.start()
    chunks = []
    for line in child.stdout:
        text = line.decode(errors="replace")
        chunks.append(text)
        if show:
            print(text, end="", flush=True)
    status = child.wait()
    timer.cancel()
    return Outcome(status, "".join(chunks), timed_out.is_set(), time.monotonic() - started)


class Suite:
    def __init__(self, long):
        self.long = long
        self.tally = Tally()
        self.scratch = Path(tempfile.mkdtemp(prefix="sandboxd-suite-", dir="/var/tmp"))
        self.scratch.chmod(0o711)  # commands of other users have files below it
        self.reports = Path(tempfile.mkdtemp(prefix="sandboxd-reports-"))
        self.env = dict(os.environ, TMPDIR=str(self.scratch), SANDBOXD_TEST_LONG="1" if long else "0")
        for name in list(self.env):
            if name.startswith("SANDBOXD_") and name != "SANDBOXD_TEST_LONG":
                del self.env[name]

    # Steps, in the order of --help ---------------------------------------------------------------------------------

    def format(self):
        """every C++ source is as clang-format 19 writes it"""
        outcome = run(["scripts/format", "--check"], 2 * MINUTE)
        self.tally.check("format", outcome.status == 0, outcome.tail())

    def headers(self):
        """every public header compiles by itself"""
        for header in sorted((ROOT / "include" / "sandboxd").glob("*.hpp")):
            outcome = run(["clang++-19", *HEADER_FLAGS, "-include", header, "/dev/null"], 2 * MINUTE)
            self.tally.check(f"header {header.name} is self-contained", outcome.status == 0, outcome.tail())

    def release(self):
        """the shipped programs build, and are what the issue promises"""
        if not self.build("release", RELEASE):
            return
        agent = ROOT / "build/release/sandboxd-agent"
        size = agent.stat().st_size
        self.tally.check("the agent is below 1.5 MB", size < 1_500_000, f"{size} bytes")
        outcome = run(["llvm-readelf-19", "--program-headers", "--section-headers", agent], MINUTE)
        self.tally.check("the agent is static and stripped",
                         outcome.status == 0 and "LOAD" in outcome.output and "INTERP" not in outcome.output
                         and ".symtab" not in outcome.output, outcome.output)
        version = run(["build/release/sandboxd", "--version"], MINUTE)
        head = run(["git", "rev-parse", "--short=12", "HEAD"], MINUTE)
        self.tally.check("sandboxd --version shows the commit",
                         version.status == 0 and (head.status != 0 or head.output.strip() in version.output),
                         version.tail())

    def service(self):
        """the service from outside, with real sandboxes (pytest)"""
        files = sorted(path.name for path in (ROOT / "tests/service").glob("test_*.py"))
        named = lambda names: [f"test_{name}.py" for name in names]
        waiting = named(["restart", "resources", "hard_b1", "hard_b2", "builds"])
        # What both backends must do alike is asked of both; each docker lane starts a daemon of its own.
        alike = ["exec", "run", "hard_b1", "hard_b2", "hard_b3", "restart", "files", "files_model", "native_files",
                 "lifecycle", "sessions", "limits", "runtimes"]
        if self.long:
            alike += ["text", "hard_b4", "hard_b5", "archive", "policy"]
        docker = [name for name in files if name.startswith("test_docker")] + named(["builds"])
        oci = [name for name in files if name not in docker and name not in waiting]
        minutes = 180 if self.long else 60
        return [self.lane("service", name, seconds, ["/usr/bin/python3", *PYTEST, f"--backend={backend}",
                                                     *[f"tests/service/{file}" for file in chosen],
                                                     *(["--long"] if self.long else [])], {}, minutes)
                for name, seconds, backend, chosen in [("waiting", 260, "oci", waiting), ("other", 630, "oci", oci),
                                                       ("docker", 550, "docker", docker),
                                                       ("docker-alike", 530, "docker", named(alike))]]

    def embedding(self):
        """a program outside the tree, compiled against an installed one (pytest)"""
        return [self.lane("embedding", "embedding", 15, ["/usr/bin/python3", *PYTEST, "tests/embedding"], {}, 40)]

    def arm64(self):
        """the programs for arm64, run in a virtual machine of that kind (with --long, or asked for)"""
        machine = run(["scripts/setup", "machine"], 20 * MINUTE)
        self.tally.check("what a virtual machine needs", machine.status == 0, machine.tail())
        if not self.build("arm64", ["sandboxd", "sandboxd-agent", "test_agent"]):
            return
        _, at_work = self.lane("arm64", "arm64", 1200, ["/usr/bin/python3", *PYTEST, "tests/arm64"], {}, 90)
        at_work()

    def conformance(self):
        """the contract's lines over HTTP and through the published clients, and the reference's own tests (pytest)"""
        if not all(conformance.made(one) for one in conformance.ALL):
            return []  # which is a failure already
        return [self.lane("conformance", name, seconds, command, env, 60 if self.long else 40)
                for name, seconds, command, env in conformance.lanes(self.long)]

    def environments(self):
        """Makes what the conformance lanes run in; it mostly waits for the network."""
        made = run(["/usr/bin/python3", "tests/conformance/environments.py"], 20 * MINUTE)
        self.tally.check("the environments of the published clients", made.status == 0, made.tail())

    def asan(self):
        """all C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer"""
        if not self.build("asan", ["all"]):
            return
        # detect_leaks needs ptrace rights, which root has; abort_on_error keeps the first report the last thing said.
        env = dict(self.env, ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
                   UBSAN_OPTIONS="print_stacktrace=1", ASAN_SYMBOLIZER_PATH="/usr/bin/llvm-symbolizer-19")
        programs = [p for p in self.programs("asan") if not p.name.endswith("_stress")]
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda program: self.boost_program(program, env), programs))

    def tsan(self):
        """the stress programs under ThreadSanitizer"""
        names = sorted(path.stem for path in (ROOT / "tests").glob("*/*_stress.cpp"))
        if not names or not self.build("tsan", names):
            return
        env = dict(self.env, TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:history_size=4",
                   TSAN_SYMBOLIZER_PATH="/usr/bin/llvm-symbolizer-19")
        for program in [p for p in self.programs("tsan") if p.name in names]:
            # ThreadSanitizer and high-entropy address layouts do not go together: no randomization.
            outcome = run(["setarch", "-R", program], (60 if self.long else 20) * MINUTE, env=env)
            self.tally.check(f"stress {program.name}", outcome.status == 0, outcome.tail())
            say(f"  {program.name}: exit {outcome.status}, {outcome.seconds:.0f} s")

    # Lanes: what one pytest runs, one test after the other -----------------------------------------------------------

    def lane(self, step, name, seconds, command, env, minutes):
        """A part of a step. `seconds`: about what it takes, for the order only; `minutes`: what it may take."""
        report = self.reports / f"{step}-{name}.xml"
        arguments = [f"--junit-xml={report}", f"--basetemp={self.reports / f'{step}-{name}'}", "--durations=5"]

        def at_work():
            outcome = run([*command, *arguments], minutes * MINUTE, env={**self.env, **env}, show=True)
            say(f"  {step}, lane {name}: exit {outcome.status}, {outcome.seconds:.0f} s")
            if not self.count_junit(step, report) or outcome.timed_out or outcome.status not in (0, 1):
                self.tally.check(f"{step}, lane {name}, ran to its end", False, outcome.tail())

        return seconds, at_work

    def run_lanes(self, steps):
        """The lanes of these steps, the longest first. Their tests mostly wait, so there are more lanes at a time than
        cores."""
        lanes = [lane for step in steps for lane in getattr(self, step)()]
        with concurrent.futures.ThreadPoolExecutor(max_workers=LANES) as pool:
            for done in [pool.submit(at_work) for _, at_work in sorted(lanes, key=lambda lane: -lane[0])]:
                done.result()

    # Parts -----------------------------------------------------------------------------------------------------------

    def build(self, preset, targets):
        outcome = run(["nice", "-n", "5", "scripts/build", preset, *targets], 40 * MINUTE,
                      env=dict(os.environ, JOBS=JOBS, NO_COLOR="1"))
        self.tally.check(f"build {preset}", outcome.status == 0, outcome.tail())
        say(f"  built {preset}: {'ok' if outcome.status == 0 else 'FAILED'}, {outcome.seconds:.0f} s")
        return outcome.status == 0

    def programs(self, preset):
        """The test programs CTest knows in a build folder."""
        outcome = run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"], MINUTE)
        try:
            tests = json.loads(outcome.output)["tests"]
        except (ValueError, KeyError):
            self.tally.check(f"list the tests of {preset}", False, outcome.tail())
            return []
        return [Path(test["command"][0]) for test in tests if test.get("command")]

    def boost_program(self, program, env):
        report = self.reports / f"{program.name}.xml"
        outcome = run([program, "--report_level=short", "--report_format=XML", f"--report_sink={report}",
                       "--log_level=error", "--color_output=no", "--catch_system_errors=no"],
                      (60 if self.long else 20) * MINUTE, env=env)
        counts = self.boost_counts(report)
        name = program.name
        say(f"  {name}: exit {outcome.status}, {outcome.seconds:.0f} s"
            + (f", {counts['passed']} passed, {counts['failed']} failed" if counts else ""))
        if counts is None:
            self.tally.check(f"{name} ran to its end", False, outcome.tail())
            return
        text = outcome.tail()
        self.tally.add(passed=counts["passed"], failed=counts["failed"], skipped=counts["skipped"],
                       failures=[(f"{name}: {counts['failed']} test case(s)", text)] if counts["failed"] else [])
        # A sanitizer may find fault at exit, after the report was written.
        if outcome.status != 0 and counts["failed"] == 0:
            self.tally.check(f"{name} exits cleanly", False, f"exit status {outcome.status}\n{text}")

    @staticmethod
    def boost_counts(report):
        try:
            suite = ElementTree.parse(report).getroot().find("TestSuite")
        except (OSError, ElementTree.ParseError):
            return None
        if suite is None:
            return None
        number = lambda key: int(suite.get(key, "0"))
        # Aborted cases are among the failed ones.
        return {"passed": number("test_cases_passed") + number("test_cases_passed_with_warnings"),
                "failed": number("test_cases_failed"), "skipped": number("test_cases_skipped")}

    def count_junit(self, step, report):
        try:
            cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return False
        passed = failed = skipped = 0
        failures = []
        for case in cases:
            bad = [child for child in case if child.tag in ("failure", "error")]
            if bad:
                failed += 1
                failures.append((f"{step}: {case.get('classname')}::{case.get('name')}",
                                 "\n\n".join((child.text or "")[-4000:] for child in bad)))
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
        self.tally.add(passed, failed, skipped, failures)
        return True

    def close(self, before):
        for name, found in leftovers.compare(before, self.scratch, ROOT, patience=60):
            self.tally.check(f"nothing left behind: {name}", not found, "\n".join(found))
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.reports, ignore_errors=True)


STEPS = ["format", "headers", "release", "service", "embedding", "conformance", "asan", "tsan", "arm64"]
ONLY_LONG = ["arm64"]


def main():
    listing = "\n".join(f"  {name:11} {getattr(Suite, name).__doc__}" for name in STEPS)
    parser = argparse.ArgumentParser(prog="scripts/test", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="steps:\n" + listing)
    parser.add_argument("--long", action="store_true", help="the large counts in full")
    parser.add_argument("--only", metavar="STEP[,STEP]", help="only these steps")
    arguments = parser.parse_args()
    usual = [name for name in STEPS if arguments.long or name not in ONLY_LONG]
    chosen = arguments.only.split(",") if arguments.only else usual
    unknown = [name for name in chosen if name not in STEPS]
    if unknown:
        parser.error(f"unknown step {unknown[0]!r} (one of: {', '.join(STEPS)})")
    if os.geteuid() != 0:
        sys.exit("scripts/test: must be root (it starts real sandboxes)")

    suite = Suite(arguments.long)
    before = leftovers.snapshot()
    started = time.monotonic()

    def step(name, body=None):
        begin = time.monotonic()
        if name in STEPS:
            say(f"{name}: {getattr(Suite, name).__doc__}")
        try:
            (body or getattr(suite, name))()
        except Exception as problem:  # a fault of this file must not pass for success
            suite.tally.check(f"step {name}", False, repr(problem))
        say(f"{name}: done in {time.monotonic() - begin:.0f} s")

    def aside(*names, body=None):
        thread = threading.Thread(target=lambda: [step(name, body) for name in names])
        thread.start()
        return thread

    outside = [name for name in ("service", "embedding", "conformance") if name in chosen]
    before_release = [aside("environments")] if "conformance" in chosen else []
    before_release.append(aside(*[name for name in ("format", "headers") if name in chosen]))
    if "release" in chosen:
        step("release")
    elif outside:
        suite.build("release", RELEASE)
    for thread in before_release:
        thread.join()
    # The tests from outside mostly wait, so they run beside the sanitizer builds.
    lanes = aside(", ".join(outside), body=lambda: suite.run_lanes(outside))
    for name in [name for name in ("asan", "tsan", "arm64") if name in chosen]:
        step(name)
    lanes.join()
    suite.close(before)

    for name, text in suite.tally.failures:
        print(f"\nFAILED {name}\n{text}".rstrip())
    print(f"\n{(time.monotonic() - started) / 60:.1f} minutes, {suite.tally.skipped} skipped")
    print(suite.tally.summary(), flush=True)
    return 1 if suite.tally.failed or not suite.tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
