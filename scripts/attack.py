"""Attack the commands at full size: kills, concurrent writers, pairs of commands, fuzzing.

    python scripts/attack.py kills moments writers pairs fuzz

The test suite has small versions of the same. Stops at the first thing that goes wrong.
"""

import argparse
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import combinations_with_replacement, cycle, islice
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS)]

SECONDS, BYTES = 10, 2 << 30  # of one input of the fuzzing: time, and memory of all of it


def kills(folder: Path, count: int) -> str:  # noqa: ARG001
    """Kill -9 at every call that changes a file, of each command."""
    from kills import COMMANDS, Server, kill_at_changes, make_states

    with Server() as server:
        states = make_states(server, folder, COMMANDS)
        done = {
            name: kill_at_changes(server, name, states[name], folder / name) for name in COMMANDS
        }
    return f"{sum(done.values())} kills: {done}"


def moments(folder: Path, count: int) -> str:
    """Kill -9 at 100 random moments of each command."""
    from kills import COMMANDS, Server, kill_at_moments, make_states

    with Server() as server:
        states = make_states(server, folder, COMMANDS)
        for name in COMMANDS:
            kill_at_moments(server, name, states[name], folder / name, times=count or 100)
            print(name, flush=True)
    return f"{count or 100} kills of each of {len(COMMANDS)} commands"


def writers(folder: Path, count: int) -> str:
    """Three concurrent writers of one file and 1,000 reads."""
    from test_files import WRITER, start

    path, reads = folder / "a.bin", 0
    path.write_bytes(b"0" * 300_000)
    processes = [start(WRITER, path, byte, 2 * (count or 1000)) for byte in "123"]
    while reads < (count or 1000) or any(each.poll() is None for each in processes):
        content = path.read_bytes()
        assert content == content[:1] * 300_000, "a torn file"
        reads += 1
    assert [each.wait() for each in processes] == [0, 0, 0]
    assert list(folder.iterdir()) == [path]
    return f"{reads} reads of {3 * 2 * (count or 1000)} written files"


def pairs(folder: Path, count: int) -> str:
    """50 pairs of commands at the same time on one run folder."""
    from kills import Server, make_states, run_pair

    names = ("train again", "certify", "defer", "report", "recalibrate", "export")
    codes: Counter[int] = Counter()
    with Server() as server:
        states = make_states(server, folder, ["train", "certify"])
        every = combinations_with_replacement(names, 2)
        for first, second in islice(cycle(every), count or 50):
            work = shutil.copytree(states["certify"], folder / "work")
            codes.update(run_pair(server, work, first, second))
            shutil.rmtree(work)
    return f"{codes.total() // 2} pairs; exit codes {dict(codes)}"


def fuzz(folder: Path, count: int) -> str:
    """10,000 inputs of each reader and of each file that the commands write."""
    from annotation_exports import EXPORTS
    from fuzzing import RUN_FILES, ChangedRun, read_changed_export, read_changed_result

    run = ChangedRun(folder)
    inputs: dict[str, Callable[[int], None]] = {
        **{
            name: lambda seed, name=name: read_changed_export(name, seed, folder / "export")  # type: ignore[misc]
            for name in EXPORTS
        },
        **{
            name: lambda seed, name=name: run.use_changed(name, seed, command=seed % 20 == 0)  # type: ignore[misc]
            for name in RUN_FILES
        },
        "store of the experiments": lambda seed: read_changed_result(seed, folder / "store"),
    }
    warnings.simplefilter("error", RuntimeWarning)  # such as an overflow
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"more than {SECONDS} seconds"))
    for name, read in inputs.items():
        began = time.monotonic()
        for seed in range(count or 10_000):
            signal.alarm(SECONDS)
            try:
                read(seed)
            except BaseException:
                print(f"{name}, seed {seed}", file=sys.stderr)
                raise
        signal.alarm(0)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert most < BYTES, f"{most:,} bytes"
    return f"{count or 10_000} inputs for each of {len(inputs)}, at most {most / 1e6:.0f} MB"


PARTS = {each.__name__: each for each in (kills, moments, writers, pairs, fuzz)}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="Parts; all if none is named."
    )
    parser.add_argument(
        "--count", type=int, default=0, help="Size of each part instead of its own."
    )
    asked = parser.parse_args()
    for name in asked.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {PARTS[name](Path(folder), asked.count)}", flush=True)


if __name__ == "__main__":
    main()
