#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Faults drawn by chance, as a table in the format of tests/mutants.txt; tests/mutants --random runs it.

  random_faults.py draw N SEED[,SEED...] BUILD TABLE REFUSED [ROOM...]   BUILD: a configured build of this tree. REFUSED: names that
                                                                        did not compile in it, drawn again
  random_faults.py refuse LOG TABLE REFUSED    adds to REFUSED the faults on the lines that a compiler's log complains about
  random_faults.py tally TABLE NOTICED SURVIVED   names of the rows that were; by room, and survivors as changes. Those of tests/
                                               equivalent_faults.txt are tallied apart
  random_faults.py kinds                       what can be drawn

Each line of code is as likely as any other, then each kind of change that it allows (an early return, which nearly all do, one time
in four), then each such change. One that does not compile, or whose choice only the compiler can make, is drawn again. Where no ROOM
is named, rooms of which chance chose fewer than LEAST that are no equivalents get others, in the same way: they count for their room
("more 1"), not among all of the seed.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fault_kinds  # noqa: E402
from fault_kinds import Source  # noqa: E402

REPO = Path(__file__).resolve().parent.parent
FOLDERS = ["common", "kernels", "models", "data", "comm", "trainer", "include", "launch"]
LEAST = int(os.environ.get("LEAST", 12))  # so that one survivor does not decide what is said of a small room
EQUIVALENT = REPO / "tests/equivalent_faults.txt"

# The room of a folder or file in the tally, and the tests that try its faults first, of scripts all: the longest path that fits.
TESTS = {
    "common": "common: common_test",
    "include": "library: (core|library)_test",
    "kernels": "kernels: kernels_test",
    "kernels/cuda": "kernels on devices: (conv2d|elementwise|linear|windows|runtime)_emulated_test",
    "kernels/emulation": "kernels on devices: emulator_test",
    "kernels/vendor": "kernels on devices: vendor_(plugin|emulated)_test",
    "models": "models: models_test",
    "models/device": "models: device_execution_emulated_test",
    "models/onnx": "models: onnx_test",
    "data": "data: data_test",
    "data/pictures": "pictures: data_picture_test",
    "data/sets": "sets: data_test",
    "data/tables": "tables: data_test",
    "comm": "comm: comm_test",
    "comm/mpi": "comm: comm_mpi_test_np[1-4]",
    "comm/mpi/all_reduce_schedule.cpp": "comm: comm_test",
    "comm/mpi/rank_watch.cpp": "comm: comm_test",
    "comm/watch": "watchdog: comm_test",
    "comm/device": "comm on devices: staged_all_reduce_emulated_test",
    "comm/nccl": "comm on devices: nccl_(missing_test|choice_test|test|plugin_test)",
    "comm/staged": "comm on devices: staged_all_reduce_emulated_test",
    "comm/backends": "comm on devices: (all_reduce|nccl)_choice_test",
    "trainer/burn": "burn: burn_test",
    "trainer/checkpoint": "checkpoints: checkpoint_test",
    "trainer/commands": "commands: (device_report|doctor|bench|job)_test | launch_reference_test",
    "trainer/config": "config: job_test",
    "trainer/device": "training: (engine|step_graphs_emulated)_test",
    "trainer/library": "library: library_test",
    "trainer/parallel": "parallel: engine_test",
    "trainer/ranks": "setup: ranks_test",
    "trainer/reports": "reports: (report|runs)_test",
    "trainer/run": "run: run_test",
    "trainer/setup": "setup: (memory_need|job|run|ranks)_test",
    "trainer/tools": "tools: (bench|doctor|prove|prediction|step_trace)_test",
    "trainer/training": "training: (training_loss|engine)_test",
    "trainer/verify": "proofs: (prove|engine)_test",
    "launch/build": "launch: launch_lib_test | launch_quickstart_test",
    "launch/bundle": "launch: launch_bundle_parts_test | launch_(bundle|containers)_test",
    "launch/bundle-command": "launch: launch_bundle_parts_test | launch_bundle_test",
    "launch/bundle-environment.sh": "launch: launch_bundle_parts_test | launch_bundle_test",
    "launch/completion": "launch: launch_reference_test | launch_package_test",
    "launch/containers": "launch: launch_containers_test",
    "launch/fetch.sh": "launch: launch_get_data(_bytes)?_test | launch_quickstart_test",
    "launch/get-data": "launch: launch_get_data(_bytes)?_test | launch_quickstart_test",
    "launch/hooks": "launch: launch_burn_hooks_test",
    "launch/install-dependencies": "launch: launch_install_dependencies_test | launch_quickstart_test",
    "launch/lib.sh": "launch: launch_lib_test | launch_run(_restarts|_end)?_test | launch_(quickstart|get_data|tidy|gpu_run|packaging|bundle)_test",
    "launch/manual-pages": "launch: launch_packaging_test | launch_package_test",
    "launch/package": "launch: launch_packaging_test | launch_(package|install)_test",
    "launch/python": "python: launch_python_(program|training|wheel)_test | launch_python(_runs)?_test",
    "launch/python/examples": "python: launch_python_runs_test",
    "launch/python/scripts": "python: launch_python_(wheel|program)_test",
    "launch/python/src/lockstep/files.py": "python: launch_python_(files|program|training)_test | launch_python(_runs)?_test",
    "launch/python/wheel_backend.py": "python: launch_python_wheel_test",
    "launch/quickstart": "launch: launch_quickstart_test",
    "launch/run": "launch: launch_run(_restarts|_end)?_test | hosts_test",
    "launch/simulate": "launch: launch_simulate_test",
    "launch/slurm": "launch: launch_slurm_job_test | launch_slurm_test",
    "launch/spack": "launch: launch_package_test",
    "launch/wheel": "launch: launch_packaging_test | launch_python_wheel_test",
}

# Guarded as what plant.sh puts before a file, since the copy may hold faults of an earlier draw.
PRELUDE = "#ifndef LOCKSTEP_PLANTED\n#define LOCKSTEP_PLANTED\n#include <cstdlib>\n" \
    "inline bool lockstep_chosen(int) { return std::getenv(\"X\") != nullptr; }\n" \
    "constexpr bool lockstep_planted(int row) { return !__builtin_is_constant_evaluated() && lockstep_chosen(row); }\n#endif\n#line 1\n"


def entry_of(path: str) -> str:
    """The row of TESTS for a file; empty for one in no room."""
    return TESTS.get(max((key for key in TESTS if path == key or path.startswith(key + "/")), key=len, default=""), "")


class Build:
    """The commands that compile each file, and their verdict on a changed one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.flags, self.compiled = folder, {}, set()
        self.home = re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", (folder / "CMakeCache.txt").read_text())[1]
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            root = str(folder.resolve())
            words, file = shlex.split(entry["command"]), entry["file"]
            if "nvcc" in words[0] or "/tests/" in file or file.endswith(".hxx.cxx"):
                continue
            sources = [file.replace(self.home + "/", "")]
            if file.startswith(entry["directory"] + "/") and Path(file.replace(entry["directory"], root)).exists():  # made by CMake
                text = Path(file.replace(entry["directory"], root)).read_text()
                sources = [name.replace(self.home + "/", "") for name in re.findall(r'#include "([^"]*\.(?:cpp|cuh?))"', text)]
            keep = words[:words.index("-o")]
            for source in sources:
                self.compiled.add(source)
                self.flags.setdefault(source, (keep, entry["directory"]))

    def headers(self):
        """Those of ours that a compiled source comes by. Others are of what is not built here."""
        found, included = set(), {}
        for source, (words, _) in ((name, entry) for name, entry in self.flags.items() if (REPO / name).is_file()):
            folders = [word[2:].removeprefix(self.home).strip("/") for word in words if word.startswith("-I" + self.home)]
            seen, left = {source}, [source]
            while left:
                path = left.pop()
                if path not in included:
                    included[path] = re.findall(r'^ *# *include [<"]([^<>"]+)', (REPO / path).read_text(), re.M)
                for name in included[path]:
                    header = next((at for at in (os.path.join(folder, name) for folder in folders) if (REPO / at).is_file()), "")
                    if header and header not in seen:
                        seen.add(header)
                        left.append(header)
            found |= seen
        return found

    def flags_of(self, path: str):
        """Those of the file, or of the nearest one that is compiled."""
        return self.flags.get(path) or self.flags[max(sorted(self.flags), key=lambda other: len(os.path.commonpath([path, other])))]

    def accepts(self, path: str, text: str) -> bool:
        """True if a script parses, or C++ compiles without a warning. Says nothing of templates that nobody calls."""
        if not fault_kinds.is_cpp(path):
            if "python" in fault_kinds.language(REPO / path):
                try:
                    compile(text, path, "exec")
                except (SyntaxError, ValueError):
                    return False
                return True
            return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0
        words, directory = self.flags_of(path)
        known = self.folder / ".random_faults" / hashlib.sha256((" ".join(words) + path + PRELUDE + text).encode()).hexdigest()
        if known.exists():
            return known.read_text() == "yes"
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / Path(path).name).write_text(PRELUDE + text)
            (Path(scratch) / "one.cpp").write_text(f'#include "{scratch}/{Path(path).name}"\n')
            command = [word for word in words if word != "-Winvalid-pch"] + ["-fsyntax-only", "-x", "c++", scratch + "/one.cpp"]
            compiles = subprocess.run(command, cwd=directory, capture_output=True).returncode == 0
        known.parent.mkdir(exist_ok=True)
        known.write_text("yes" if compiles else "no")
        return compiles


def product_files(build: Build, rooms):
    """Paths of product sources that are compiled here, and of scripts."""
    listed = subprocess.run(["git", "-C", str(REPO), "ls-files", *FOLDERS], capture_output=True, text=True, check=True).stdout.split()
    headers = build.headers()
    for path in listed:
        if rooms and not any(path.startswith(room) or entry_of(path).startswith(room + ":") for room in rooms):
            continue
        if path in headers or path in build.compiled or \
                (not fault_kinds.is_cpp(path) and path.startswith("launch/") and fault_kinds.language(REPO / path)):
            yield path


def room_of(path: str) -> str:
    return entry_of(path).split(":")[0]


def draw(count, seeds, build, refused, rooms):
    """Yields (label of the seed, source, change, text of the planted form) for each fault."""
    sources = {path: Source(path, (REPO / path).read_text()) for path in product_files(build, rooms)}
    lines = [(path, number) for path, source in sources.items() for number in source.code_lines()]
    used, redrawn = collections.defaultdict(set), 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:

        def draw_from(lines, count, chance, label):
            nonlocal redrawn
            drawn = tries = 0
            while drawn < count:
                batch, most = [], 100 * count + 10000 + tries
                while len(batch) < count - drawn:
                    tries += 1
                    if tries > most:
                        sys.exit(f"there are not {count} faults in these rooms that compile ({label})")
                    path, number = chance.choice(lines)
                    kinds = sources[path].changes(number)
                    if chance.randrange(4):
                        kinds.pop("early return", None)  # nearly every line allows it
                    change = kinds and chance.choice(kinds[chance.choice(sorted(kinds))])
                    lines_of_row = set(sources[path].row_lines(change)) if change else set()
                    if not change or used[path] & lines_of_row or change.name(path) in refused:
                        continue
                    used[path] |= lines_of_row
                    batch.append((sources[path], change))
                files = {source.path: source for source, _ in batch}
                groups = [[change for source, change in batch if source.path == path] for path in files]
                forms = {}
                for found in pool.map(lambda group: forms_of(build, *group), [(files[path], group) for path, group in zip(files, groups)]):
                    forms.update(found)
                for source, change in batch:
                    form = forms[source.path, change.start, change.end, change.text]
                    drawn += form is not None and not (label.startswith("more") and change.key(source.path) in known)
                    redrawn += form is None
                    if form is not None:
                        yield label, source, change, form
                print(f"{label}: {drawn} of {count}", file=sys.stderr)

        counts, known = collections.defaultdict(collections.Counter), equivalents()
        for seed in seeds:
            for fault in draw_from(lines, count, random.Random(f"faults {seed}"), f"seed {seed}"):
                counts[seed][room_of(fault[1].path)] += fault[2].key(fault[1].path) not in known
                yield fault
        for seed in seeds if not rooms else ():
            for room in sorted({room_of(path) for path, _ in lines} - {""}):
                of_room = [(path, number) for path, number in lines if room_of(path) == room]
                yield from draw_from(of_room, max(LEAST - counts[seed][room], 0), random.Random(f"faults {seed} {room}"), f"more {seed}")
    print(f"{redrawn} that do not compile were drawn again; {len(lines)} lines of code", file=sys.stderr)


def forms_of(build, source, changes):
    """{(path, start, end, text): the first way to plant it that compiles, or None} of changes of a file, tried together, then in halves."""
    def compiles(forms):
        text = source.with_forms(list(zip(changes, forms)))
        return build.accepts(source.path, re.sub(r"PLANTED\w*", lambda word: f"lockstep_{'planted' if word[0] == 'PLANTED' else 'chosen'}(1)", text))

    if len(changes) == 1:
        forms = [next((form for form in changes[0].forms if compiles([form])), None)]
    elif all(change.forms for change in changes) and compiles([change.forms[0] for change in changes]):
        forms = [change.forms[0] for change in changes]
    else:
        middle = len(changes) // 2
        return {**forms_of(build, source, changes[:middle]), **forms_of(build, source, changes[middle:])}
    return {(source.path, change.start, change.end, change.text): form for change, form in zip(changes, forms)}


def write_table(path, head, faults):
    """By room; a fault drawn again takes the number of the one that was refused, so that few files are built again."""
    faults = {f"{fault[0]}: {fault[2].name(fault[1].path)}": fault for fault in faults}
    order = sorted(faults, key=lambda name: room_of(faults[name][1].path))
    before = [row["name"] for row in read_table(path)] if Path(path).exists() else []
    others = [name for name in order if name not in before]
    order = [name if name in faults else others.pop(0) for name in before if name in faults or others] + others
    last = None
    with open(path, "w", encoding="utf-8") as out:
        print(f"# {head}", file=out)
        for name in order:
            _, source, change, form = faults[name]
            room, _, tests = entry_of(source.path).partition(": ")
            if room != last:
                print(f"\nroom {room.replace(' ', '_')}", file=out)
            last = room
            print(f"\nfault {name}\nin {source.path}", file=out)
            old, new = source.row(change, form)
            print(*("-" + line for line in old), *("+" + line for line in new), sep="\n", file=out)
            print(*(f"tests ^{test}$" for test in tests.split(" | ")), sep="\n", file=out)
            print(*("# -" + line for line in change.old), *("# +" + line for line in change.new), sep="\n", file=out)


def read_table(path):
    """Rows: name, file, room, seed, is_more, tests, lines found and put there, old and new lines as a reader sees them."""
    rows, room = [], ""
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("room "):
            room = line[5:]
        elif line.startswith("fault "):
            _, label, seed, *_ = line.split()
            rows.append({"name": line[6:], "room": room, "seed": seed.rstrip(":"), "is_more": label == "more"})
            rows[-1].update({key: [] for key in ("tests", "find", "put", "old", "new")})
        elif line.startswith("in "):
            rows[-1]["file"] = line[3:]
        elif line.startswith("tests "):
            rows[-1]["tests"].append(line[6:])
        elif rows and line[:1] in ("-", "+"):
            rows[-1]["find" if line[0] == "-" else "put"].append(line[1:])
        elif line.startswith(("# -", "# +")):
            rows[-1]["old" if line[2] == "-" else "new"].append(line[3:])
    return rows


def equivalents():
    """{(file, old, new)} of tests/equivalent_faults.txt: "equivalent REASON", then "in FILE", lines with - and +."""
    found, now = set(), None
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() + ["equivalent"]:
        if line.startswith("equivalent"):
            if now:
                found.add((now["file"], "\n".join(now["-"]), "\n".join(now["+"])))
            now = {"file": "", "-": [], "+": []}
        elif now and line.startswith("in "):
            now["file"] = line[3:]
        elif now and line[:1] in "-+" and line:
            now[line[0]].append(line[1:].strip())
    return found


def tally(table, noticed, survived):
    known = equivalents()
    names, others = (set(Path(file).read_text(encoding="utf-8").splitlines()) for file in (noticed, survived))
    rows, survivors = [row for row in read_table(table) if row["name"] in names | others], []
    for seed in sorted({row["seed"] for row in rows}):
        counts = collections.defaultdict(collections.Counter)
        for row in (row for row in rows if row["seed"] == seed):
            key = (row["file"], "\n".join(line.strip() for line in row["old"]), "\n".join(line.strip() for line in row["new"]))
            state = "noticed" if row["name"] in names else "equivalent" if key in known else "survived"
            counts[row["room"]][state] += 1
            counts["all"][state] += not row["is_more"]
            if state == "survived":
                survivors.append(row)
        print(f"seed {seed}: noticed / drawn without equivalent ones")
        for room in sorted(counts, key=lambda name: (name == "all", name)):
            count = counts[room]
            of = count["noticed"] + count["survived"]
            print(f"  {room:<20} {count['noticed']:>4} / {of:<4} {100 * count['noticed'] / max(of, 1):>4.0f} %   equivalent: {count['equivalent']}")
    for row in survivors:
        print(f"survived: {row['room']}: {row['name']}", *("-" + line for line in row["old"]), *("+" + line for line in row["new"]), sep="\n")


def refuse(log, table, refused):
    """A fault whose file and line an error names. Where there is none, as of a default that makes another file's constant none, all
    in files that the errors come by; else all whose lines have a name that an error quotes."""
    said = Path(log).read_text(encoding="utf-8", errors="replace")
    places = re.findall(r"([\w./-]+):(\d+):\d+: (?:error|warning)", said)
    texts = re.findall(r"(?:error|warning): [^‘'\n]*[‘']([^’'\n]*)[’']", said)
    quoted = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"<[^<>]*>|\(.*?\)", "", text))[-1:]}
    guilty, near, named = [], [], []
    for row in read_table(table):
        first, name = int(re.search(r":(\d+): ", row["name"])[1]), row["name"].split(": ", 1)[1]
        if any(file.endswith("/" + row["file"]) and first <= int(line) < first + len(row["old"]) + 1 for file, line in places):
            guilty.append(name)
        if re.search(rf"(?:from .*|\n[^\n]*)/{re.escape(row['file'])}:\d+[:,]", said):
            near.append(name)
        if quoted.intersection(re.findall(r"\w+", " ".join(row["old"]))):
            named.append(name)
    guilty = guilty or near or named
    with open(refused, "a", encoding="utf-8") as out:
        print(*guilty, sep="\n", end="\n" if guilty else "", file=out)
    print(f"{len(guilty)} that do not compile are drawn again")
    return 0 if guilty else 1


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if words[0] == "draw":
        count, seeds, build, table, refused, *rooms = words[1:]
        skip = set(Path(refused).read_text(encoding="utf-8").splitlines()) if Path(refused).exists() else set()
        tree = subprocess.run(["git", "-C", str(REPO), "ls-files", "-s", *FOLDERS], capture_output=True, check=True).stdout + \
            subprocess.run(["git", "-C", str(REPO), "diff", "HEAD", "--", *FOLDERS], capture_output=True, check=True).stdout
        state = hashlib.sha256(tree + Path(__file__).read_bytes() + Path(fault_kinds.__file__).read_bytes() + "".join(sorted(skip)).encode())
        head = f"random {count} {seeds} {' '.join(rooms)} {state.hexdigest()}"
        if not Path(table).exists() or Path(table).read_text(encoding="utf-8").split("\n", 1)[0] != "# " + head:
            write_table(table, head, list(draw(int(count), seeds.split(","), Build(Path(build)), skip, rooms)))
        return 0
    if words[0] == "tally":
        return tally(*words[1:])
    if words[0] == "refuse":
        return refuse(*words[1:])
    print(*fault_kinds.KINDS, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
