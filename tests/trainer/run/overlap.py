#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""overlap.py TRACE [BENCH.json]: what a trace says, read with Perfetto's own classes (PyPI: perfetto, protobuf).

Prints a JSON object for each rank: steps, names, seconds of a step in which all-reduces were under way, and those in
which the rank did not wait meanwhile. With the output of `lockstep bench step --json --trace TRACE`, fails unless rank
0's are those that the bench measured, within 5 %.
"""
import collections
import json
import sys


def slices_of(path):
    """rank's name → [(track, begin, end, category, name)]; fails where begins and ends do not match."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    processes, rank_of, open_slices, slices = {}, {}, collections.defaultdict(list), collections.defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.uuid] = track.process.process_name
            else:
                rank_of[track.uuid] = processes[track.parent_uuid]
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[track].append((packet.timestamp, event.categories[0], event.name))
        else:
            begin, category, name = open_slices[track].pop()
            assert begin <= packet.timestamp, f"{name} ends before it begins"
            slices[rank_of[track]].append((track, begin, packet.timestamp, category, name))
    assert not any(open_slices.values()), "a slice does not end"
    return slices


def joined(intervals):
    result = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def common(a, b):
    return sum(max(0, min(ends) - max(begins)) for begins, ends in
               (((x[0], y[0]), (x[1], y[1])) for x in a for y in b))


def summary(slices):
    of = collections.defaultdict(list)
    for _, begin, end, category, _ in slices:
        of[category].append((begin, end))
    steps = len(of["step"])
    sums, waits = joined(of["all-reduce"]), joined(of["waiting"])
    under_way = sum(end - begin for begin, end in sums)
    return {"steps": steps, "names": sorted({name for *_, name in slices}),
            "under_way_seconds": under_way * 1e-9 / steps,
            "hidden_seconds": (under_way - common(sums, waits)) * 1e-9 / steps}


def main(trace, bench=None):
    ranks = {name: summary(slices) for name, slices in sorted(slices_of(trace).items())}
    for name, rank in ranks.items():
        print(json.dumps({"rank": name, **rank}))
    if bench is None:
        return 0
    with open(bench, encoding="utf-8") as file:
        traced = json.load(file)["traced"]
    rank0 = ranks[min(ranks)]
    read = rank0["hidden_seconds"] / rank0["under_way_seconds"]
    measured = traced["hidden_measured_seconds"] / traced["under_way_measured_seconds"]
    print(f"hidden: {read:.4f} of the all-reduces by the trace, {measured:.4f} by the bench")
    return 0 if abs(read - measured) <= 0.05 and rank0["steps"] == traced["steps"] else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("--help", "-h"):
        print(__doc__.strip())
        sys.exit(0 if len(sys.argv) == 2 else 2)
    sys.exit(main(*sys.argv[1:]))
