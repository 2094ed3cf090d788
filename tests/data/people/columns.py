# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Columns of tables: what is missing, what is not a number, and rows that are there twice."""
import pandas

from .cases import case
from .tables import FEATURES, REFUSED, flowers, samples_of, table

MISSING = {"mean": lambda column: column.fillna(column.mean()), "median": lambda column: column.fillna(column.median())}


def with_holes(name):
    """Without the rows that have holes there are five of each kind."""
    frame = pandas.concat([flowers(name), flowers(name + " more").iloc[[1, 2, 4]]], ignore_index=True)
    frame[FEATURES] += 100
    frame.loc[[1, 7], "width"] = None
    frame.loc[2, "depth"] = None
    return frame


for written in ("", "NA", "NaN", "?", "null"):
    @case("columns", f"missing numbers, written {written!r}")
    def _(folder, written=written):
        return table(folder, with_holes("holes"), na_rep=written, want={**REFUSED, "word": "line"})


for name, option in (("skipped", ["--skip-damaged"]), ("dropped", ["--missing", "drop"])):
    @case("columns", f"rows with missing numbers are {name}")
    def _(folder, name=name, option=option):
        frame = with_holes(name)
        return table(folder, frame, options=option, want={"samples": samples_of(frame.dropna())})

for how, fill in MISSING.items():
    @case("columns", f"missing numbers become the {how}")
    def _(folder, how=how, fill=fill):
        more = flowers(how).iloc[[0, 3, 6, 9, 12, 2, 5, 8, 11, 1, 4, 7]]  # ten of each kind
        frame = pandas.concat([with_holes(how), more], ignore_index=True)
        frame.loc[18:, FEATURES] += 100
        filled = frame.assign(**{feature: fill(frame[feature]) for feature in FEATURES})
        return table(folder, frame, options=["--missing", how], want={"samples": samples_of(filled), "near": 0.7})


@case("columns", "a column of text")
def _(folder):
    frame = flowers("text").assign(colour=["red", "blue", "red"] * 5)
    return table(folder, frame, want={**REFUSED, "word": "colour", "details": "column 5 (colour)"})


@case("columns", "a column of text, dropped")
def _(folder):
    frame = flowers("dropped text")
    return table(folder, frame.assign(colour="red"), options=["--drop", "colour"], want={"samples": samples_of(frame)})


@case("columns", "a column of text, one-hot")
def _(folder):
    frame = flowers("one-hot")
    colours = ["red", "blue", "green"] * 5
    numbers = frame.assign(**{colour: [float(colour == other) for other in colours] for colour in ("red", "blue", "green")})
    return table(folder, frame.assign(colour=colours), options=["--one-hot", "colour"],
                 want={"samples": samples_of(numbers), "any_order": True})


COLUMNS = {
    "a date": (lambda i: f"2026-11-{i + 1:02}", "taken"),
    "True and False": (lambda i: i % 2 == 0, "taken"),
    "infinity": (lambda i: "inf" if i == 3 else i, "line 5"),
    "beyond fp32": (lambda i: 1e39 if i == 3 else i, "line 5"),
    "thousands with commas": (lambda i: f"1,{i + 100}", "taken"),
    "money": (lambda i: f"${i}", "taken"),
    "percents": (lambda i: f"{i}%", "taken"),
    "hexadecimal": (lambda i: f"0x{i:02x}", "taken"),
}
for name, (value, word) in COLUMNS.items():
    @case("columns", f"a column of {name}")
    def _(folder, name=name, value=value, word=word):
        frame = flowers(name)
        return table(folder, frame.assign(taken=[value(i) for i in range(len(frame))]),
                     want={**REFUSED, "word": word, "details": "column 5 (taken)"})


@case("columns", "large whole numbers")
def _(folder):
    frame = flowers("large")
    return table(folder, frame.assign(taken=[2 ** 24 + i for i in range(len(frame))]))


@case("columns", "rows that are there twice")
def _(folder):
    frame = flowers("twice", rows=5)
    frame = pandas.concat([frame, frame], ignore_index=True)
    return table(folder, frame, want={"samples": samples_of(frame), "said": "training half"})
