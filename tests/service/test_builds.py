"""Runtimes that are built, with what both backends must do alike (contract 4.4, 4.6, 4.7, N10; issue lines D.N.111, 112)."""

import concurrent.futures
import re
import time

import pytest

from harness import bases
from harness.builds import REPOSITORY, SLOW, Prepare, built, lines, refusal, runtimes, tags, warming
from harness.wait import until


@pytest.fixture
def tags_of(request, backend):
    """tags_of(service, name): the tags of images that were built."""
    docker = request.getfixturevalue("docker") if backend == "docker" else None
    return lambda service, name: tags(service, name, docker)


# Building ----------------------------------------------------------------------------------------------------------


def with_manager(name, *rest):
    why = bases.missing(name)
    return pytest.param(name, *rest, id=name, marks=[pytest.mark.skipif(why is not None, reason=str(why))])


@pytest.mark.parametrize("manager,package,check", [
    with_manager("pip", "hello_pip>=1", "hello-pip"),
    with_manager("apt", "hello-apt", "hello-apt"),
    with_manager("npm", "hello-npm.tgz", "cd /workspace && node -p 'require(\"hello-npm\")'"),
    with_manager("cargo", "hello-cargo", "hello-cargo"),
])
def test_4_4_5_a_package_of_each_manager(services, images, package_base, manager, package, check):
    service = services(runtimes=runtimes(images, made=built(f"shape-{manager}", package_base(manager), packages=[package],
                                                            package_manager=manager)))
    with service.open(runtime="made") as session:
        assert session.sh(check) == bases.WORDS.format(manager)
        if manager == "apt":  # what a package's own script does to its files
            assert session.sh("stat -c '%u:%g %a' /usr/bin/hello-apt") == "1234:1234 4755\n"
            assert session.sh("dpkg-query -W -f '${Status}' hello-apt") == "install ok installed"


def test_4_6_setup_commands_variables_and_an_account(services, images, package_base):
    entry = built("account", package_base("pip"), packages=["hello_pip"], setup_commands=["echo one >/made && echo two >>/made"],
                  env_vars={"WORDS": "it's $HOME and \"more\""})
    service = services(runtimes=runtimes(images, made=entry), sandbox_uid=4321)
    with service.open(runtime="made") as session:
        assert session.sh("cat /made") == "one\ntwo\n"
        assert session.sh("echo \"$WORDS\"") == "it's $HOME and \"more\"\n"
        assert session.sh("whoami; echo $HOME $UV_SYSTEM_PYTHON $VIRTUAL_ENV") == "agent\n/home/agent 0 /opt/venv\n"
        assert session.sh("command -v pip; hello-pip") == "/opt/venv/bin/pip\nhello from pip\n"
        assert session.exec("touch /etc/x")["exit_code"] == 1
        assert session.sh("touch /opt/venv/x && echo may") == "may\n"


def test_8_1_172_173_a_built_runtimes_ceilings_and_the_services_work_dir(services, images):
    """Another work directory in the definition is not the sandbox's."""
    entry = {**built("shaped", images.box_image, work_dir="/app", setup_commands=["pwd >/made"]), "mem_limit": "96m", "pids_limit": 77,
             "description": "mine"}
    service = services(runtimes=runtimes(images, shaped=entry), work_dir="/work", mem_limit="64m")
    row = {one["alias"]: one for one in service.request("GET", "/policy").json()["runtimes"]}["shaped"]
    assert (row["mem_limit"], row["pids_limit"], row["builds"], row["description"]) == ("96m", 77, True, "mine")
    with service.open(runtime="shaped") as session:
        assert session.sh("pwd; cat /made") == "/work\n/\n"
        assert session.request("GET", "?usage=true").json()["usage"]["memory_limit_bytes"] == 96 << 20


def test_two_opens_of_an_unbuilt_runtime_start_one_build(services, images, tags_of):
    service = services(runtimes=runtimes(images, slow=built(
        "once", images.box_image, setup_commands=["sleep 3", "cat /proc/sys/kernel/random/uuid >/made"])))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = [pool.submit(service.open, runtime="slow") for _ in range(3)]
        seen = until(lambda: warming(service), what="warming in /healthz")
        assert [(one["runtime"], one["state"]) for one in seen] in ([("slow", "looking")], [("slow", "building")])
        # Others are not held up.
        with service.open(runtime="box") as other:
            assert other.sh("echo here") == "here\n"
        made = set()
        for one in first:
            with one.result(SLOW) as session:
                made.add(session.sh("cat /made"))
    assert len(made) == 1
    assert len(lines(service, "building image")) == 1
    assert warming(service) == []
    assert len(tags_of(service, "once-")) == 1


def test_a_build_that_fails_is_a_502_with_the_steps_words_and_is_not_kept(services, images, tags_of):
    service = services(runtimes=runtimes(images, bad=built("bad", images.box_image, setup_commands=[
        "true", "echo some words && exit 3"])))
    for _ in range(2):
        words = refusal(service, "bad")
        assert "some words" in words and "exit 3" in words and re.search(r"returned 3|non-zero code: 3", words), words
    assert len(lines(service, "building image")) == 2
    assert not tags_of(service, "bad-")


def test_4_4_6_what_cannot_be_built_is_told_in_words(services, images):
    service = services(runtimes=runtimes(images, odd=built("a name with blanks", images.box_image),
                                         absent=built("absent", "localhost:1/no/such:image")))
    assert "image tag" in refusal(service, "odd")
    assert "localhost:1/no/such" in refusal(service, "absent")


def test_4_4_3_without_a_cache_every_open_builds(services, images):
    service = services(runtimes=runtimes(images, fresh=built("fresh", images.box_image, cache_image=False, env_vars={"A": "1"})))
    for _ in range(2):
        with service.open(runtime="fresh") as session:
            assert session.sh("echo $A") == "1\n"
    assert len(lines(service, "building image")) == 2


def test_4_4_8_older_images_of_the_runtime_go_and_no_others(services, images, tags_of):
    service = services(runtimes=runtimes(images, old=built("prune", images.box_image, env_vars={"V": "1"}),
                                         other=built("prune-not", images.box_image)))
    for alias in ("old", "other"):
        service.open(runtime=alias).close()
    before = tags_of(service, "prune-")
    (old,) = [tag for tag in before if "prune-not" not in tag]
    service.terminate()
    service.settings["runtimes"] = runtimes(images, new=built("prune", images.box_image, env_vars={"V": "2"}))
    service.start()
    service.open(runtime="new").close()
    until(lambda: old not in tags_of(service, "prune"), what="the removal of the older image")
    left = tags_of(service, "prune-")
    assert len(left) == 2
    assert len([tag for tag in left if re.fullmatch(rf"{REPOSITORY}:prune-not-[0-9a-f]{{12}}", tag)]) == 1


def test_steps_are_counted_alike_and_told_when_they_begin(services, images, tags_of):
    """In the log, and while they last in /healthz."""
    service = services(runtimes=runtimes(images, steps=built(
        "steps", images.box_image, setup_commands=["echo one", "sleep 600"], env_vars={"A": "1"})), prewarm=1, shutdown_grace=1)

    def step():
        return [(one["step"], one["done"], one["total"]) for one in warming(service) if one["runtime"] == "steps"]

    until(lambda: step() == [(3, 2, 5)], SLOW, "the long step")
    service.terminate()
    service.settings.update(runtimes=runtimes(images, steps=built(
        "steps", images.box_image, setup_commands=["echo one", "echo two"], env_vars={"A": "1"})))
    service.log.write_text("")
    service.start()
    until(lambda: lines(service, "the images of all runtimes are here"), SLOW, "the end of the pass")
    (tag,) = tags_of(service, "steps-")
    told = [line.split(f"building {tag}: ", 1)[1] for line in lines(service, f"building {tag}: ")]
    assert [line for line in told if " now: " not in line] == [
        f"step 1 of 5: FROM {images.box_image}", "step 2 of 5: RUN echo one", "step 3 of 5: RUN echo two", "step 4 of 5: ENV A=1",
        "step 5 of 5: WORKDIR /workspace"]


# Prepare and the background pass -----------------------------------------------------------------------------------


def test_d_n_112_prepare_makes_what_a_session_runs(unstarted, images, package_base, tags_of):
    service = unstarted(runtimes=runtimes(images, made=built("ahead", package_base("pip"))), sandbox_uid=1234)
    done = Prepare(service)
    assert done.wait() == 0, done.said
    before = tags_of(service, "ahead-")
    assert len(before) == 1
    service.start()
    with service.open(runtime="made") as session:
        assert session.sh("id -u; whoami") == "1234\nagent\n"
    assert not lines(service, "building image") and tags_of(service, "ahead-") == before
    service.stop()


def test_u_n_110_prepare_names_what_is_not_ready_and_does_the_rest(unstarted, images, tags_of):
    service = unstarted(runtimes=runtimes(images, also="localhost:1/x", good=built("good", images.box_image),
                                          bad=built("never", images.box_image, setup_commands=["exit 1"])))
    began = time.monotonic()
    done = Prepare(service)
    assert done.wait() == 1
    assert "Not prepared: also, bad" in done.said.splitlines()[-1]
    assert done.said.count(f"building image {REPOSITORY}:never-") == 3
    assert time.monotonic() - began >= 40  # two pauses of 10 s for each
    assert len(tags_of(service, "good-")) == 1


def test_u_n_110_prepare_with_settings_that_make_no_sense(unstarted):
    done = Prepare(unstarted(token=""))
    assert done.wait() == 2
    assert len(done.said.splitlines()) == 1 and "SANDBOXD_TOKEN" in done.said


def test_d_n_111_a_first_failure_then_success_in_prepare(unstarted, images, late_base, tags_of):
    base, bring = late_base
    service = unstarted(runtimes=runtimes(images, late=built("late-prepare", base)))
    done = Prepare(service)
    until(lambda: "attempt 1 of 3" in done.said or done.process.poll() is not None, SLOW, "the first failure")
    bring()
    assert done.wait() == 0, done.said
    assert "attempt 1 of 3" in done.said
    assert len(tags_of(service, "late-prepare-")) == 1


def test_d_n_111_a_first_failure_then_success_in_the_background_pass(services, images, late_base, tags_of):
    base, bring = late_base
    service = services(runtimes=runtimes(images, late=built("late-pass", base)), prewarm=1)
    until(lambda: lines(service, "attempt 1 of 2"), SLOW, "the first failure")
    seen = [(one["runtime"], one["state"], one["attempt"]) for one in warming(service)]
    assert seen == [("late", "waiting", 2)]
    bring()
    until(lambda: tags_of(service, "late-pass-"), SLOW, "the second attempt")
    until(lambda: warming(service) == [], what="the end of the pass")
    before = len(lines(service, "building image"))
    with service.open(runtime="late") as session:
        assert session.sh("echo up") == "up\n"
    assert len(lines(service, "building image")) == before


def test_8_1_192_196_a_runtime_that_fails_stops_neither_the_service_nor_the_next(services, images, tags_of):
    service = services(runtimes=runtimes(images, bad=built("bad-pass", images.box_image, setup_commands=["exit 1"]),
                                         worse=built("next-pass", images.box_image)), prewarm=1)
    with service.open(runtime="box") as session:
        assert session.sh("echo up") == "up\n"
    until(lambda: lines(service, "Could not prepare runtime bad"), SLOW, "the last failure")
    until(lambda: lines(service, "runtime worse is ready"), SLOW, "the next one")
    assert len(tags_of(service, "next-pass-")) == 1
    assert service.request("GET", "/healthz").status == 200
    assert service.request("GET", "/policy").json()["prewarm"] is True


def test_8_1_191_prewarm_can_be_turned_off(services, images, tags_of):
    """The other service, which is started later, shows how long a pass takes."""
    cold = services(runtimes=runtimes(images, cold=built("cold", images.box_image)), prewarm=0)
    warm = services(runtimes=runtimes(images, warm=built("warm", images.box_image)), prewarm=1)
    assert cold.request("GET", "/policy").json()["prewarm"] is False
    until(lambda: lines(warm, "the images of all runtimes are here"), SLOW, "the end of the other's pass")
    assert len(tags_of(warm, "warm-")) == 1
    assert not tags_of(cold, "cold-") and warming(cold) == []
    assert not lines(cold, "is ready") and not lines(cold, "building image")
