#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Tries the faults of a table that tests/random_faults.py drew, in a build that holds all of them; tests/mutants --random runs it.

  fault_trials.py BUILD TABLE FOLDER SECONDS   FOLDER: gets noticed, survived, reached/; has source/, the copy that was built

Each test runs once without a fault, and notes which faults its programs came by. A fault is then tried with the tests that came by
it alone: those that its row names first, then quick unit tests, then others by the rare words that they share with the changed
lines, until one fails or SECONDS of tests have passed; one that no test came by has survived. A fault in a script is tried with the
tests that its row names. A test that fails or is skipped without a fault notices nothing. JOBS: faults at once.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fault_kinds import is_cpp  # noqa: E402
from random_faults import read_table  # noqa: E402

REPO = Path(__file__).resolve().parent.parent
PROGRAMS = {"launch", "end_to_end", "chaos"}  # labels of tests that run whole programs
JOBS = int(os.environ.get("JOBS", os.cpu_count()))


def words_of(text):
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]{2,}", text)}


def source_of(name):
    """The text of a test of whole programs; nothing of others, which are many tests each."""
    of_program = re.fullmatch(r"end_to_end_(\w+?)(?:\.(\w+)\.(\w+))?", name)
    path = REPO / (f"tests/trainer/end_to_end/{of_program[1]}.cpp" if of_program else f"tests/launch/{name.removeprefix('launch_')}.sh")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return next((test for test in re.split(r"\nTEST", text) if re.match(rf"\w*\({of_program[2]}, {of_program[3]}\)", test)), text) if of_program else text


class Tests:
    """The tests of a build, run one at a time each; by name their seconds and the faults that they come by."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
        self.labels = {test["name"]: next((one["value"] for one in test["properties"] if one["name"] == "LABELS"), [])
                       for test in json.loads(told)["tests"]}
        self.names = list(self.labels)
        self.locks = collections.defaultdict(threading.Lock)
        self.seconds, self.reached = {}, collections.defaultdict(set)
        self.words = {name: words_of(source_of(name)) for name in self.names}
        self.with_word = collections.Counter(word for words in self.words.values() for word in words)

    def run(self, name, row, limit):
        """("passed", "failed", "skipped" or "no end", seconds) of a test with that fault; 0: none, a folder: notes there what it comes by."""
        mark = f"{self.folder}:{threading.get_ident()}"
        environment = dict(os.environ, LOCKSTEP_PLANTED=str(row), LOCKSTEP_MUTANTS=mark, GTEST_FAIL_FAST="1")
        with self.locks[name]:
            began = time.monotonic()
            child = subprocess.Popen(["ctest", "--test-dir", self.build, "--no-tests=error", "-R", f"^{re.escape(name)}$"], env=environment,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
            try:
                said, result = child.communicate(timeout=limit)[0], ""
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                said, result = child.communicate()[0], "no end"
            end_leftovers(mark)
            result = result or ("failed" if child.returncode else "skipped" if re.search(r"\*\*\*Skipped|\(Skipped\)", said) else "passed")
            return result, time.monotonic() - began

    def look(self, state):
        """Runs all of them without a fault, or reads what an earlier call noted of the same faults and sources."""
        notes = self.folder / "reached"
        if not (notes / "state").exists() or (notes / "state").read_text() != state:
            shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(exist_ok=True)
        (notes / "state").write_text(state)

        def look_at(name):
            note, result = notes / name, notes / (name + ".result")
            if not result.exists():
                shutil.rmtree(note, ignore_errors=True)
                note.mkdir()
                result.write_text("%s %.2f" % self.run(name, note, 600))
            what, seconds = result.read_text().split(maxsplit=1)[0], float(result.read_text().split()[-1])
            if what != "passed":
                print(f"{what} without a fault, and notices nothing: {name}", flush=True)
                return
            self.seconds[name] = seconds
            for row in os.listdir(note):
                self.reached[int(row)].add(name)

        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(look_at, self.names))

    def those_for(self, number, row, budget):
        """The tests of a row, in their order."""
        named = [name for pattern in row["tests"] for name in self.names if re.search(pattern, name) and name in self.seconds]
        if not is_cpp(row["file"]):
            return named
        chosen = [name for name in named if name in self.reached[number]]
        words = words_of(" ".join(row["find"]) + " " + Path(row["file"]).stem)

        def order(name):
            is_quick = not PROGRAMS & set(self.labels[name]) and self.seconds[name] < 10
            return not is_quick, -sum(1 / self.with_word[word] for word in words & self.words[name]), self.seconds[name]

        chosen += sorted(self.reached[number] - set(chosen), key=order)
        left, fitting = budget, []
        for name in chosen:
            left -= self.seconds[name]
            if left < 0 and fitting:
                break
            fitting.append(name)
        return fitting


def end_leftovers(mark):
    """Processes that a fault left running, known by their environment."""
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"LOCKSTEP_MUTANTS={mark}".encode() in place.read_bytes().split(b"\0"):
                os.kill(int(place.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass


class PlantedScript:
    """A script with its fault, in the copy, until the end of the block."""

    def __init__(self, row, source):
        self.row, self.path = row, source / row["file"]

    def __enter__(self):
        if not is_cpp(self.row["file"]):
            self.text = self.path.read_text(encoding="utf-8")
            old, new = ("\n".join(self.row[key]) for key in ("find", "put"))
            if self.text.count(old) != 1:
                sys.exit(f"{self.row['name']}: its lines are not in {self.path}")
            self.path.write_text(self.text.replace(old, new), encoding="utf-8")

    def __exit__(self, *error):
        if not is_cpp(self.row["file"]):
            self.path.write_text(self.text, encoding="utf-8")


def main(words):
    if len(words) != 4:
        print(__doc__)
        return 0 if words in (["-h"], ["--help"]) else 2
    build, table, folder, budget = words[0], words[1], Path(words[2]).resolve(), float(words[3])
    rows = list(enumerate(read_table(table), 1))
    noticed = set((folder / "noticed").read_text(encoding="utf-8").splitlines()) if (folder / "noticed").exists() else set()
    rows = [(number, row) for number, row in rows if row["name"] not in noticed]
    (folder / "survived").write_text("")
    for script in {row["file"] for _, row in rows if not is_cpp(row["file"])}:
        shutil.copy(REPO / script, folder / "source" / script)  # undoes a call that was cut short
    tests = Tests(build, folder)
    state = (folder / "state").read_bytes() if (folder / "state").exists() else b""
    tests.look(hashlib.sha256(Path(table).read_bytes() + state).hexdigest())
    writing = threading.Lock()

    def attempt(numbered):
        number, row = numbered
        said, tried = "SURVIVED", tests.those_for(number, row, budget)
        with PlantedScript(row, folder / "source"):
            for name in tried:
                result, _ = tests.run(name, number, 30 + 5 * tests.seconds[name])
                if result == "failed":  # twice, so that no test that fails now and then counts
                    result, _ = tests.run(name, number, 30 + 5 * tests.seconds[name])
                if result in ("failed", "no end"):
                    said = name + (": no end" if result == "no end" else "")
                    break
        with writing:
            print(f"{number:3} {row['name']:<90} {said}" + (f" ({len(tried)} tests)" if said == "SURVIVED" else ""), flush=True)
            with open(folder / ("survived" if said == "SURVIVED" else "noticed"), "a", encoding="utf-8") as out:
                print(row["name"], file=out)

    in_code = [one for one in rows if is_cpp(one[1]["file"])]
    random.Random(0).shuffle(in_code)  # neighbours want the same tests, of which each runs once at a time
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(attempt, in_code))
    for one in rows:
        if not is_cpp(one[1]["file"]):
            attempt(one)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
