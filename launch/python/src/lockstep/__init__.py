# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Data-parallel training whose weights do not depend on the number of ranks, from Python.

    import lockstep

    run = lockstep.train("mnist", train__epochs=2, ranks=2)
    print(run.metrics["test_accuracy"], run.sha256)

The work is done by the program `lockstep`, which comes with this package. docs/python.md has more.
"""
from typing import Any

from .program import (DataError, DeviceError, Error, InternalError, IoError, MissingDataError, PeerLostError, Refuted,
                      Stopped, UsageError, WrongRankError)
from .program import version as _version
from .run import Run, runs
from .training import train

__version__: str

__all__ = ["DataError", "DeviceError", "Error", "InternalError", "IoError", "MissingDataError", "PeerLostError", "Refuted",
           "Run", "Stopped", "UsageError", "WrongRankError", "runs", "train"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
