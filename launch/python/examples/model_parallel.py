# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The guide's model parallel network: layers on two ranks, grains of each batch one behind the other.

    python3 model_parallel.py [KEY=VALUE ...]
    mpirun -np 2 python3 model_parallel.py [KEY=VALUE ...]
"""
import os
import sys

import lockstep

overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
under_mpirun = "OMPI_COMM_WORLD_SIZE" in os.environ
run = lockstep.train("model-parallel", ranks=None if under_mpirun else 2, **overrides)

if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
    start, end = run.events("start")[-1], run.events("end")[-1]
    print("stages:", start["stages"], "on ranks", start["placement"])
    print(f"idle: {end['pipeline']['bubble']:.1%} of the ranks' time")
