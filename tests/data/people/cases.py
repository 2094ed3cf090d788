# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""How a case says what is in its set, and how that is compared with what the program read."""
import collections
import dataclasses
import json
import os
import re
import subprocess
import zlib

import numpy

PROGRAM = os.path.abspath(os.environ.get("LOCKSTEP_PROGRAM", "build/release/lockstep"))
JOB = ("model: linear\ntrain: {epochs: 1, max_steps: 2}\nparallel: {grain: 16, device: cpu}\n"
       "run: {trail: false, report: false, curve: false}\n")
TROUBLES = (2, 65, 66, 69, 74)  # usage, data, missing, not here, input and output
CASES = []


class Wrong(Exception):
    """A failed expectation."""


@dataclasses.dataclass
class Case:
    family: str
    name: str
    check: object  # (folder) → "read" or "refused"; raises Wrong


@dataclasses.dataclass
class Want:
    """A set. Samples are (class, numbers in the program's order), where None stands for numbers that are not compared."""
    convert: list = None           # arguments of `lockstep convert`, without where to
    job: dict = None               # the data section of a job that trains on it as it lies
    samples: list = None           # both halves': a fifth of each class becomes the test half; None: it must be refused
    halves: dict = None            # half → samples, where the files say which
    classes: list = None           # in their order; None: sorted
    shape: tuple = None            # channels, height, width
    word: str = ""                 # a refusal has it; "": it must be read
    details: str = ""              # each line before that sentence must have it; "": there are none
    said: str = ""                 # a regular expression that the words about a set match
    near: float = 0                # numbers may differ by so much
    is_trained: bool = True        # the converted set
    stdin: bytes = None
    data: str = None               # $LOCKSTEP_DATA


def case(family, name):
    """A function of the case's folder that makes the set and returns its Want."""
    def register(make):
        CASES.append(Case(family, name, lambda folder: check(folder, make(folder))))
    return register


def random_of(name):
    return numpy.random.default_rng(zlib.crc32(name.encode()))


def lockstep(folder, *arguments, stdin=None, data=None):
    environment = {**os.environ, "LOCKSTEP_DATA": data or "/nowhere", "XDG_CACHE_HOME": f"{folder}/.cache", "HOME": folder}
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, input=stdin, env=environment,
                          capture_output=True, timeout=120)


def outcome_of(done, word, details=""):
    """"refused" in one sentence that has the word, behind lines of details; or "read"."""
    said = done.stderr.decode(errors="backslashreplace").strip()
    if done.returncode == 0:
        return "read"
    if done.returncode not in TROUBLES or "internal" in said:
        raise Wrong(f"exit code {done.returncode}: {said}")
    *before, sentence = said.split("\n")
    if not sentence.startswith("lockstep: ") or any(not details or details not in line for line in before):
        raise Wrong(f"no one sentence: {said}")
    if not word:
        raise Wrong(f"refused: {said}")
    if word.lower() not in sentence.lower():
        raise Wrong(f"the sentence lacks {word!r}: {said}")
    return "refused"


def require(condition, text):
    if not condition:
        raise Wrong(text)


def read_set(directory):
    """classes, shape, half → samples, as docs/shard-format.md has them."""
    with open(f"{directory}/shards.index", encoding="utf-8") as file:
        head = json.loads(file.readline())
    classes = head["class_names"] or [str(i) for i in range(head["classes"])]
    shape = head["channels"], head["height"], head["width"]
    halves = {}
    for half in ("train", "test", "validation"):
        if half not in head:
            continue
        files = sorted(name for name in os.listdir(directory) if name.startswith(half) and name.endswith(".shard"))
        numbers = b"".join(open(f"{directory}/{name}", "rb").read() for name in files)
        rows = numpy.frombuffer(numbers, "<f4" if head.get("sample") == "float32" else "u1").reshape(-1, numpy.prod(shape))
        labels = numpy.fromfile(f"{directory}/{half}-labels.u32", "<u4")
        names = [classes[label] for label in labels] if not head.get("several_labels") else joined_names(labels, classes)
        require(len(rows) == len(names), f"{len(rows)} samples and {len(names)} labels")
        halves[half] = [(name, row.astype("f8")) for row, name in zip(rows, names)]
    return classes, shape, halves, head.get("sample") == "float32"


def joined_names(numbers, classes):
    """Labels "a+b" of samples with several, after their number."""
    names = []
    while len(numbers):
        names.append("+".join(classes[label] for label in numbers[1:numbers[0] + 1]))
        numbers = numbers[numbers[0] + 1:]
    return names


def counts(samples):
    return dict(sorted(collections.Counter(name for name, _ in samples).items()))


def expected_counts(want):
    """half → class → samples."""
    if want.halves:
        return {half: counts(samples) for half, samples in want.halves.items()}
    every = counts(want.samples)
    return {"train": {name: n - n // 5 for name, n in every.items()}, "test": {name: n // 5 for name, n in every.items()}}


def all_samples(want):
    return want.samples if want.halves is None else [sample for half in want.halves.values() for sample in half]


def classes_of(want):
    return want.classes or sorted({name for name, _ in all_samples(want)}, key=lambda name: name.encode())


def compare_numbers(read, wanted, want):
    """As sets of samples: each that is wanted is there, once."""
    left = collections.defaultdict(list)
    for name, row in read:
        left[name].append(row)
    for name, numbers in wanted:
        if numbers is None:
            continue
        row = numpy.asarray(numbers).astype("f4").astype("f8").ravel()
        same = [i for i, other in enumerate(left[name]) if len(other) == len(row) and
                numpy.all(numpy.abs(other - row) <= want.near)]
        require(same, f"no sample of {name!r} is {row[:8]}... ({len(row)} numbers), but {[r[:8] for r in left[name][:3]]}")
        left[name].pop(same[0])


def compare(want, classes, shape, halves):
    require(classes == classes_of(want), f"classes {classes}, not {classes_of(want)}")
    if want.shape:
        require(shape == want.shape, f"channels, rows, columns {shape}, not {want.shape}")
    expected = expected_counts(want)
    for half in ("train", "test", "validation"):
        require(counts(halves.get(half, [])) == {n: c for n, c in expected.get(half, {}).items() if c},
                f"{half}: {counts(halves.get(half, []))}, not {expected.get(half)}")
        if want.halves:
            compare_numbers(halves.get(half, []), want.halves.get(half, []), want)
    if not want.halves:
        compare_numbers(halves["train"] + halves["test"], want.samples, want)


def compare_sentence(want, text):
    """Checks that the output of `convert` agrees with its files."""
    said = re.search(r"([\d,]+) class(?:es)?\b.* ([\d,]+) (?:sample|image)s? to train on, (?:([\d,]+) to validate and )?"
                     r"([\d,]+) to test with", text)
    require(said, f"says no counts: {text}")
    numbers = [int((number or "0").replace(",", "")) for number in said.groups()]
    expected = {half: sum(samples.values()) for half, samples in expected_counts(want).items()}
    true = [len(classes_of(want)), expected["train"], expected.get("validation", 0), expected["test"]]
    require(numbers == true, f"says {said.group()!r}, not {true}")


def write_job(folder, section):
    """A size such as 8x6 is no text in quotes."""
    fields = [f"{key}: {value if key == 'size' else json.dumps(value)}"
              for key, value in {"global_batch": 4, **section}.items()]
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(JOB + "data: {" + ", ".join(fields) + "}\n")


def train(folder, want, section, word):
    """Two steps, and what an evaluation says of the test half."""
    write_job(folder, section)
    run = f"run-{section['set']}"
    done = lockstep(folder, "train", "job.yaml", f"run.dir={run}", data=want.data)
    if outcome_of(done, word) == "refused":
        return "refused", done
    expected = {half: sum(samples.values()) for half, samples in expected_counts(want).items()}
    with open(f"{folder}/{run}/metrics.jsonl", encoding="utf-8") as file:
        start = json.loads(file.readline())
    trained = start["train_samples"], start["test_samples"]
    require(trained == (expected["train"], expected["test"]), f"trains on {trained}, not {expected}")
    checked = lockstep(folder, "validate", "job.yaml", "--data", "--json", data=want.data)
    require(checked.returncode == 0, f"validate refuses what trains: {checked.stderr.decode()}")
    sizes = json.loads(checked.stdout)
    is_published = section["set"] in ("mnist", "cifar10", "cifar100")  # validate has their published sizes
    require(is_published or (sizes["train_samples"], sizes["test_samples"]) == trained, f"validate has {sizes}")
    judged = lockstep(folder, "eval", run, "--classes", "--json", data=want.data)
    require(judged.returncode == 0, f"eval refuses what trains: {judged.stderr.decode()}")
    answer = json.loads(judged.stdout)
    require([row["name"] for row in answer["classes"]] == classes_of(want),
            f"eval has classes {[row['name'] for row in answer['classes']]}, not {classes_of(want)}")
    tested = {row["name"]: row["samples"] for row in answer["classes"] if row["samples"]}
    wanted = {name: n for name, n in expected_counts(want)["test"].items() if n}
    require(tested == wanted, f"eval tests {tested}, not {wanted}")
    right = sum(row[i] for i, row in enumerate(answer["confusion"]))
    require(right == answer["correct"] and answer["samples"] == expected["test"], "eval does not add up")
    return "read", done


def check(folder, want):
    is_refused = want.samples is None and want.halves is None
    outcomes = []

    def judge(done, outcome):
        text = (done.stdout + done.stderr).decode(errors="backslashreplace")
        outcomes.append(outcome)
        require(outcome == "refused" or not is_refused, f"read: {text}")
        if outcome == "read" and want.said:
            require(re.search(want.said, text, re.IGNORECASE), f"does not say {want.said!r}: {text}")

    if want.convert:
        done = lockstep(folder, "convert", *want.convert[:1], "set", *want.convert[1:], stdin=want.stdin, data=want.data)
        judge(done, outcome_of(done, want.word, want.details))
        if outcomes[0] == "read":
            classes, shape, halves, is_table = read_set(f"{folder}/set")
            compare(want, classes, shape, halves)
            compare_sentence(want, done.stdout.decode())
            if want.is_trained and not want.job:
                train(folder, want, {"set": "table" if is_table else "shards", "root": "set"}, "")
        else:
            require(not os.path.exists(f"{folder}/set/shards.index"), "refused, and there is a set")
    if want.job:
        outcome, done = train(folder, want, want.job, want.word)
        judge(done, outcome)
    return "read" if "read" in outcomes else "refused"
