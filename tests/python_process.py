"""Python processes for what cannot be shown in the process of the tests."""

import os
import subprocess
import sys
from pathlib import Path


def run_python(code: str, *arguments: str, folder: Path | None = None, **environment: str) -> str:
    """What the code prints in a process of its own, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
