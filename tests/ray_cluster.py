"""A running Ray cluster of two workers, for tests that join one."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiny_runs import start

# Ray has processes of its own here: it warns about its future, and warnings are errors in tests.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "disabled",
}
_CLUSTER = """
import time
import ray

started = ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80_000_000)
print(started.address_info["gcs_address"], flush=True)
time.sleep(150)
"""


@contextmanager
def ray_cluster() -> Iterator[str]:
    """The address of a cluster; its files need a short path, for its sockets."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    cluster = start([sys.executable, "-c", _CLUSTER], RAY_TMPDIR=str(folder), **QUIET)
    assert cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    assert re.fullmatch(r"[\d.]+:\d+", address), address
    try:
        yield address
    finally:
        cluster.terminate()
        cluster.communicate(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)
