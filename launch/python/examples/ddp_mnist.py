# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The guide to DistributedDataParallel on MNIST: 64 samples a step on each rank. What mp.spawn does there, mpirun does here.

    mpirun -np 2 python3 ddp_mnist.py [KEY=VALUE ...]
"""
import os
import sys

import lockstep

overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
try:
    run = lockstep.train("ddp-mnist", **overrides)
except lockstep.Error as error:  # 75: saved, the same command goes on; 71: a rank was lost
    print(error, file=sys.stderr)
    sys.exit(error.code)

if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
    print(f"accuracy {run.evaluate()['accuracy']:.4f}, {run.name}, trained by {run.summary['ranks']} ranks")
    print("best:", run.best.evaluate()["accuracy"])
