# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Shared by the tests of the Python package: the package over the program of this build, and small data.

Imported without numpy it ends the test as skipped, with exit code 77.
"""
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's has it, if any has
    print("skipped: no numpy (python3-numpy)")
    sys.exit(77)

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "launch" / "python"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PACKAGE / "src"))
os.environ.setdefault("LOCKSTEP_PROGRAM", str(REPO / "build" / "release" / "lockstep"))
os.environ.update(PYTHONDONTWRITEBYTECODE="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

MADE = {"set": "synthetic", "train_samples": 256, "test_samples": 64}
SHORT = {"data": MADE, "data__global_batch": 128, "parallel__grain": 32, "train__epochs": 2, "parallel__device": "cpu", "quiet": True}
LONG = dict(SHORT, data=dict(MADE, train_samples=2560), train__epochs=100)


def bars(count, seed):
    """8 x 6 pictures of bars that lie (0) or stand (1)."""
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 40, (count, 8, 6), dtype=np.uint8), np.arange(count) % 2
    for image, label, at in zip(x, y, random.integers(1, 5, count)):
        image[(at, slice(None)) if label == 0 else (slice(None), at)] = 255
    return x, y


class InAFolder(unittest.TestCase):
    """Each class of tests works in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.before = os.getcwd()
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        os.environ["XDG_CACHE_HOME"] = cls.folder + "/cache"

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        shutil.rmtree(cls.folder)
