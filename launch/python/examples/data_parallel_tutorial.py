# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""PyTorch's DataParallel tutorial: batches of 30 random samples through Linear(5, 2), cut among three threads.

    python3 data_parallel_tutorial.py [KEY=VALUE ...]
"""
import sys

import numpy as np

import lockstep

overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
run = lockstep.train("data-parallel-tutorial", ranks=3, **overrides)  # prints sizes inside and outside of the model

print("the weights of Linear(5, 2):", run.weights["fc.weight"], run.weights["fc.bias"], sep="\n")
alone = lockstep.train("data-parallel-tutorial", ranks=1, quiet=True, **overrides)
same = all(np.array_equal(mine, alone.weights[name]) for name, mine in run.weights.items())
print("one rank comes to the same bits:", same, run.sha256)
