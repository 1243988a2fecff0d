"""Workers with hard limits: what goes over one is said, and the next call gets a worker again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from corpusforge.verify import Task, Verdict, _limits, _workers, passed, verify
from corpusforge.verify._limits import Exceeded, call, hold, spread


def reason(function: str, *arguments: object) -> str:
    with pytest.raises(Exceeded) as over:
        call(function, *arguments)
    return over.value.reason


def test_a_call_returns_what_the_function_returns() -> None:
    assert call("builtins:divmod", 17, 5) == [3, 2]


def test_too_much_memory_is_said_and_the_worker_lives_on() -> None:
    before = call("os:getpid")
    assert reason("builtins:bytearray", 2 * _workers.MEMORY) == "memory"
    assert call("os:getpid") == before


def test_time_by_the_clock_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    call("os:getpid")
    monkeypatch.setattr(_limits, "WALL_SECONDS", 0.2)
    assert reason("time:sleep", 100) == "timeout"
    monkeypatch.undo()
    assert call("builtins:abs", -1) == 1


def test_processor_time_is_limited_inside_c_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "WALL_SECONDS", 300.0)
    assert reason("builtins:pow", 3, 10**10) == "timeout"


def test_a_worker_that_dies_is_said_and_replaced() -> None:
    assert reason("os:abort") == "crashed"
    assert call("builtins:abs", -1) == 1


def test_an_error_in_the_function_is_named_without_its_text() -> None:
    with pytest.raises(RuntimeError, match=r"^builtins:int raised ValueError$"):
        call("builtins:int", "a text of a row")


def test_what_a_library_prints_is_no_reply() -> None:
    assert call("builtins:print", '{"value": 7}') is None
    assert call("builtins:abs", -2) == 2


def test_threads_get_their_own_replies() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: call("builtins:abs", -n), range(100))) == list(range(100))


BOMB = [3, 10**10]


def own(arguments: list[int], gold: list[int]) -> bool:
    with pytest.raises(Exceeded) as over:
        hold("builtins:pow", arguments, gold)
    assert over.value.reason == "timeout"
    return over.value.own


@pytest.mark.slow
def test_what_goes_over_a_limit_is_the_answers_own_fault_where_the_gold_stays_within_it() -> None:
    assert hold("builtins:pow", [3, 4], BOMB) == 81
    assert own(BOMB, [3, 4])
    assert not own(BOMB, BOMB)
    assert not own([2, 10**11], BOMB)


def test_by_the_clock_alone_nothing_is_an_answers_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "WALL_SECONDS", 0.3)
    monkeypatch.setattr(_limits, "ALONE_SECONDS", 0.6)
    with pytest.raises(Exceeded) as over:
        hold("time:sleep", [100], [0])
    assert (over.value.reason, over.value.own) == ("timeout", False)


def test_a_slow_neighbour_costs_no_verdict_a_call_held_alone_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "WALL_SECONDS", 0.3)
    assert hold("time:sleep", [1], [0]) is None


def test_an_error_is_the_answers_own_where_the_gold_has_none() -> None:
    with pytest.raises(Exceeded) as over:
        hold("builtins:int", ["a text of a row"], ["7"])
    assert (over.value.reason, over.value.own) == ("error", True)
    with pytest.raises(Exceeded) as over:
        hold("builtins:int", ["a text of a row"], ["another"])
    assert not over.value.own


def test_no_other_call_runs_beside_one_that_is_held_alone() -> None:
    call("builtins:abs", -1)
    ended: list[str] = []

    def other() -> None:
        call("builtins:abs", -1)
        ended.append("other")

    with _workers.pool.alone():
        threads = [threading.Thread(target=other) for _ in range(3)]
        for thread in threads:
            thread.start()
        call("time:sleep", 0.3)
        ended.append("alone")
    for thread in threads:
        thread.join()
    assert ended == ["alone", "other", "other", "other"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_workers_of_its_own() -> None:
    code = (
        "import os, sys\n"
        "from corpusforge.verify._limits import call\n"
        "mine = call('os:getpid')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if call('os:getpid') != mine else 1)\n"
        "again = call('os:getpid')\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or again != mine)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_no_worker_outlives_the_process_that_started_it() -> None:
    code = "from corpusforge.verify._limits import call; print(call('os:getpid'), flush=True); input()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)
    parent.kill()
    parent.communicate()
    for _ in range(600):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the worker still runs a minute after its parent was killed")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_an_interrupt_does_not_wait_for_calls_that_are_under_way() -> None:
    def check(_task: Task, _completion: object) -> Verdict:
        call("time:sleep", 8)
        return passed("math.equal")

    call("builtins:abs", -1)  # a worker is there
    timer = threading.Timer(1.0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        spread(check, [Task("math", {})] * 20, [""] * 20)
    assert time.perf_counter() - began < 6
    assert call("builtins:abs", -1) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_lock_held_while_the_process_forks_is_not_held_in_the_child() -> None:
    units = pytest.importorskip("corpusforge.verify._units")
    task = {"verifier": {"kind": "numeric", "spec": {"answer": "5000", "unit": "m"}}}
    assert verify(task, "5 km").outcome == "pass"
    with units._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if verify(task, "50000 dm").outcome == "pass" else 1)
    assert os.waitpid(child, 0)[1] == 0
