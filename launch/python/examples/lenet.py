# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""LeNet on Fashion-MNIST as "Dive into Deep Learning" trains it on one device and on two.

    python3 lenet.py [KEY=VALUE ...]
"""
import sys

import lockstep

overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])


def draw(event):
    if event["event"] == "epoch":
        print(f"epoch {event['epoch']:2}  accuracy {event['test_accuracy']:.4f}  {'#' * int(60 * event['test_accuracy'])}")


runs = {ranks: lockstep.train("lenet", ranks=ranks, progress=draw, quiet=True, **overrides) for ranks in (1, 2)}
for ranks, run in runs.items():
    print(ranks, "ranks:", run.metrics["train_seconds"].mean(), "s an epoch, weights", run.sha256)
one, two = (list(run.metrics["test_accuracy"]) for run in runs.values())
print("the same curve:", one == two)
