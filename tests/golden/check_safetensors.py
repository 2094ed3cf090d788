#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Checks against Python's safetensors, by hand; needs `pip install safetensors numpy`.

    check_safetensors.py write FILE     writes what tests/golden/python.safetensors holds
    check_safetensors.py read FILE...   loads files that Lockstep wrote, prints name, dtype, shape and sum
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def golden_tensors():
    return {
        "conv1.weight": (np.arange(10 * 1 * 5 * 5, dtype=np.float32) / 8 - 3).reshape(10, 1, 5, 5),
        "conv1.bias": np.linspace(-1, 1, 10, dtype=np.float32),
        "counts": np.array([-1, 0, 2**62], dtype=np.int64),
        "pixels": np.arange(7, dtype=np.uint8),
        "scalar": np.array(2.5, dtype=np.float64),
        "empty": np.zeros((0, 3), dtype=np.float32),
    }


def read(path):
    with safe_open(path, framework="numpy") as file:
        print(f"{path}: metadata {file.metadata()}")
        for name in file.keys():
            tensor = file.get_tensor(name)
            print(f"  {name:20} {tensor.dtype} {list(tensor.shape)} sum {tensor.sum(dtype=np.float64):.9g}")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("write", "read"):
        sys.exit(__doc__)
    if sys.argv[1] == "write":
        save_file(golden_tensors(), sys.argv[2], metadata={"made_by": "python"})
    else:
        for path in sys.argv[2:]:
            read(path)


if __name__ == "__main__":
    main()
