# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""PyTorch's mnist_hogwild example: two threads train one set of weights without locks. No two runs end in the same.

    python3 hogwild_mnist.py [KEY=VALUE ...]
"""
import sys

import numpy as np

import lockstep

overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
first, second = (lockstep.train("hogwild-mnist", ranks=2, **overrides) for _ in range(2))

for name, weights in first.weights.items():
    print(f"{name:15} differs by at most {np.abs(weights - second.weights[name]).max():.2g}")
print("accuracy", first.summary["test_accuracy"], "and", second.summary["test_accuracy"])
