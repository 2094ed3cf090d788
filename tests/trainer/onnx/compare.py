#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""compare.py MODEL.onnx LOGITS.safetensors: whether onnxruntime computes of a test set what Lockstep computes of it.

LOGITS is what the program `logits` beside this file wrote. The model passes ONNX's own checker; each sample has the same
class; and the difference of all logits is at most 1e-6 of their size, both as the root of the sum of squares.
Needs `pip install numpy onnx onnxruntime safetensors`. Prints one line; the exit code is 1 where something differs.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file

LARGEST_DIFFERENCE, BATCH = 1e-6, 1000


def run(path, images):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    parts = [images[i:i + BATCH] for i in range(0, len(images), BATCH)]
    return np.concatenate([session.run(["logits"], {"image": part})[0] for part in parts])


def main(model, logits_file):
    onnx.checker.check_model(onnx.load(model), full_check=True)
    ours = load_file(logits_file)
    images = ours["images"]
    if images.dtype == np.uint8:
        images = images.astype(np.float32) / np.float32(255)
    wanted, theirs = ours["logits"], run(model, images)
    norm = lambda x: np.linalg.norm(x.astype(np.float64))
    difference = norm(theirs.astype(np.float64) - wanted) / norm(wanted)
    worst = (np.abs(theirs - wanted).max(axis=1) / np.abs(wanted).max(axis=1)).max()
    other = int((theirs.argmax(axis=1) != wanted.argmax(axis=1)).sum())
    right = int((theirs.argmax(axis=1) == ours["labels"]).sum())
    print(f"{model}: {len(wanted)} samples, {right} right, {other} of another class, logits differ by {difference:.2g} "
          f"(worst sample {worst:.2g})")
    return int(other > 0 or not difference <= LARGEST_DIFFERENCE)


sys.exit(main(*sys.argv[1:]))
