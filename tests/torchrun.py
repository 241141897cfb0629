"""Two processes of one command, started by torchrun."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def torchrun(
    *command: str, made: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Two processes of ``command``, which makes ``made``; one that hangs fails the test."""
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *command]
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, *start],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "CUDA_VISIBLE_DEVICES": "",  # the CPU, also where there is a GPU
                "PYTHONPATH": os.pathsep.join(sys.path),
                **environment,
            },
        )
        # On a busy machine gloo sometimes aborts a process at its end, after its work is done (1 of
        # about 30 runs, torch 2.13). Then the command is started again.
        if "terminate called without an active exception" not in done.stderr:
            break
        if made is not None:
            shutil.rmtree(made)
            made.mkdir()
    return done
