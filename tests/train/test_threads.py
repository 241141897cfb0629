"""Small work on one thread: the caller's threads, errors and Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from types import FrameType

import polars as pl
import pytest
import torch

import credalearn as cl
from clouds import classifier, clouds
from credalearn.train import Progress, Recipe, train
from credalearn.train._threads import on_one_thread
from small_training import Heard, run, same_weights, small_training

NOTICED = Event()  # by the main thread: Ctrl-C


def interrupt(number: int, frame: FrameType | None) -> None:
    NOTICED.set()
    signal.default_int_handler(number, frame)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """The other tests have one thread, with which nothing is done."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    # A process that a script started in the background ignores Ctrl-C.
    handler = signal.signal(signal.SIGINT, interrupt)
    NOTICED.clear()
    yield
    signal.signal(signal.SIGINT, handler)
    torch.set_num_threads(before)


def threads_of_a_new_thread() -> int:
    """Threads of torch in a thread that starts now."""
    found: list[int] = []

    def look() -> None:
        torch.ones(2).sum()
        found.append(torch.get_num_threads())

    thread = Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def test_work_has_one_thread_and_the_caller_keeps_its_own() -> None:
    entered, leave, seen = Event(), Event(), []
    during: list[int] = []

    def work(stopped: Event) -> str:
        seen.append(torch.get_num_threads())
        torch.rand(200, 200) @ torch.rand(200, 200)
        entered.set()
        assert leave.wait(60)
        seen.append(torch.get_num_threads())
        return "done"

    def watch() -> None:
        """While the work is under way."""
        assert entered.wait(60)
        during.extend([torch.get_num_threads(), threads_of_a_new_thread()])
        leave.set()

    watcher = Thread(target=watch)
    watcher.start()
    assert on_one_thread(work) == "done"
    watcher.join()
    assert seen == [1, 1]
    assert during == [2, 2]
    assert (torch.get_num_threads(), threads_of_a_new_thread()) == (2, 2)


def test_one_thread_is_left_as_it_is() -> None:
    torch.set_num_threads(1)
    assert on_one_thread(lambda _: threading.current_thread()) is threading.current_thread()


@pytest.mark.parametrize("error", [cl.TrainingError("no"), ValueError("no"), SystemExit(3)])
def test_errors_reach_the_caller(error: BaseException) -> None:
    def work(stopped: Event) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        on_one_thread(work)
    assert caught.value is error
    assert torch.get_num_threads() == 2


def control_c() -> None:
    """What a terminal sends: a signal, which Python handles in the main thread; wait until then.

    After the first work of polars, whose handler comes before Python's and wakes no thread.
    """
    pl.DataFrame({"x": [2, 1]}).lazy().sort("x").collect()
    NOTICED.clear()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    assert NOTICED.wait(60)


class Interrupting(Heard):
    """Presses Ctrl-C twice at the end of the second epoch."""

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        super().epoch(number, of=of, loss=loss, items=items)
        if number == 2:
            control_c()
            control_c()


def test_control_c_ends_training_after_an_epoch(tmp_path: Path) -> None:
    recipe, path = Recipe(epochs=200, batch_size=20), tmp_path / "resume.safetensors"
    listener = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        train([small_training(recipe, checkpoint=path, listener=listener)])
    done = len(listener.epochs)
    assert 2 <= done < 200
    assert not any(each.name.startswith("small work") for each in threading.enumerate())
    assert torch.get_num_threads() == 2
    again = Heard(stop_after=done + 1)  # the checkpoint has all epochs that were done
    with pytest.raises(KeyboardInterrupt):
        train([small_training(recipe, checkpoint=path, listener=again)])
    assert again.done_before == [done]


@pytest.mark.catches("train/_threads.py", "stopped.set()", "pass")
def test_control_c_ends_a_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = clouds()
    reports: list[str] = []

    def report(text: str, share: float) -> None:
        reports.append(text)
        control_c()
        time.sleep(0.2)  # at work still, when the main thread would go on too early

    monkeypatch.setattr(Progress, "note", lambda _, text, share: report(text, share))
    with pytest.raises(KeyboardInterrupt):
        cl.CredalClassifier(verbose=True).fit(X, y)
    assert len(reports) < 4
    assert not any(each.name.startswith("small work") for each in threading.enumerate())


def test_the_number_of_threads_does_not_change_the_weights() -> None:
    recipe = Recipe(epochs=2, batch_size=20)
    several = run(recipe)
    torch.set_num_threads(1)
    assert same_weights(several, run(recipe))


@pytest.mark.parametrize("method", ["auto", "pocc"])
def test_a_fit_changes_no_threads(method: str) -> None:
    X, y, _ = clouds()
    clf = cl.CredalClassifier() if method == "auto" else classifier(method)
    clf.fit(X, y).predict(X)
    assert (torch.get_num_threads(), threads_of_a_new_thread()) == (2, 2)
