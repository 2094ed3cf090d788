#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""compare.py FOLDER METRICS: whether TensorBoard reads from the event files of a folder what metrics.jsonl has."""
import json
import math
import struct
import sys
from datetime import datetime

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NO_SCALARS = {"step", "steps", "epoch", "accuracy_steps", "train_samples", "test_samples"}


def expected(path):
    series = {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        if event["event"] not in ("step", "loss", "epoch"):
            continue
        time = datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
        for key, value in event.items():
            if key in NO_SCALARS or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            single = struct.unpack("<f", struct.pack("<f", value))[0]
            series.setdefault(f"{event['event']}/{key}", []).append((event["step"], single, time))
    return series


def main():
    folder, metrics = sys.argv[1:3]
    found = EventAccumulator(folder, size_guidance={"scalars": 0})
    found.Reload()
    wanted = expected(metrics)
    tags = found.Tags()
    assert sorted(tags["scalars"]) == sorted(wanted), (tags["scalars"], sorted(wanted))
    for tag, points in wanted.items():
        there = [(event.step, event.value) for event in found.Scalars(tag)]
        assert there == [(step, value) for step, value, _ in points], (tag, there, points)
        for event, (_, _, time) in zip(found.Scalars(tag), points):
            assert math.isclose(event.wall_time, time, abs_tol=0.002), (tag, event.wall_time, time)
    assert not tags["images"] and not tags["graph"] and not tags["tensors"], tags
    print(f"{sum(map(len, wanted.values()))} values of {len(wanted)} tags")


main()
