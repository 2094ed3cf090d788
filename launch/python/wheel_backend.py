#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Builds the wheel: wheel_backend.py BUNDLE DIRECTORY, or through pip with LOCKSTEP_BUNDLE (PEP 517).

BUNDLE is what `launch/bundle --without-tests` makes. The package is put together of src/, the bundle as lockstep/_bundle,
and a script. The same files give the same bytes. Needs Python 3.11, and readelf for what the wheel asks of a machine.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Libraries of every machine with numpy: PEP 600 allows a wheel to need them.
OF_THE_SYSTEM = re.compile(r"^(libstdc\+\+|libgcc_s|libz)\.so")
LEFT_OUT = re.compile(r"^(bin|tests|launch)/|^libexec/(mpirun|orted|environment\.sh)$|^(VERSION|LICENSE)$")
DOCUMENTS = Path("/usr/share/doc")


def readelf(option, file):
    return subprocess.run(["readelf", option, "-W", file], capture_output=True, text=True, check=True).stdout


def needed(file):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", file))


def of_the_program(bundle):
    """The libraries that the program and its plugins need themselves; the others are Open MPI's."""
    found, waiting = set(), [*bundle.glob("libexec/lockstep*")]
    while waiting:
        for name in needed(waiting.pop()):
            if name not in found and not name.startswith("libmpi.") and (bundle / "lib" / name).exists():
                found.add(name)
                waiting.append(bundle / "lib" / name)
    return found


def bundled(bundle):
    """(path below _bundle, file) of all that goes into the wheel."""
    own = of_the_program(bundle)
    for file in sorted(path for path in bundle.rglob("*") if path.is_file()):
        path = str(file.relative_to(bundle))
        if LEFT_OUT.search(path) or (file.parent == bundle / "lib" and OF_THE_SYSTEM.match(file.name)):
            continue
        if file.parent == bundle / "lib" and file.name not in own:
            path = "mpi/" + file.name
        yield path, file


def is_elf(file):
    with open(file, "rb") as opened:
        return opened.read(4) == b"\x7fELF"


def platform_tag(files):
    """manylinux_2_N: the oldest C library that has every symbol."""
    versions = {(int(a), int(b)) for file in files if is_elf(file) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", file))}
    return "manylinux_%d_%d_%s" % (*max(versions), os.uname().machine)


def copyrights(files):
    """(name, file) of what the Debian packages of bundled libraries say of their authors; nothing elsewhere than on Debian."""
    names = {file.name for file in files if is_elf(file) and not file.name.startswith("lockstep")}
    try:
        said = subprocess.run(["dpkg", "-S", *(f"*/{name}" for name in sorted(names))], capture_output=True, text=True, check=False).stdout
    except OSError:
        return
    for package in sorted({line.split(":")[0] for line in said.splitlines()}):
        file = DOCUMENTS / package / "copyright"
        if file.is_file():
            yield package, file


def metadata(project, version):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"License: {project['license']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {name}" for name in project["dependencies"]] + [f"Classifier: {name}" for name in project["classifiers"]]
    return "\n".join(lines) + "\n"


def contents(bundle, tag, version, project):
    """(path in the wheel, bytes, whether it can be run), without RECORD."""
    info = f"lockstep-{version}.dist-info"
    for file in sorted((HERE / "src").rglob("*")):
        if file.is_file() and file.suffix in (".py", ".typed"):
            yield str(file.relative_to(HERE / "src")), file.read_bytes(), False
    files = list(bundled(bundle))
    for path, file in files:
        yield "lockstep/_bundle/" + path, file.read_bytes(), os.access(file, os.X_OK)
    yield f"lockstep-{version}.data/scripts/lockstep", (HERE / "scripts" / "lockstep").read_bytes(), True
    yield f"{info}/licenses/LICENSE", (bundle / "LICENSE").read_bytes(), False
    for package, file in copyrights([file for _, file in files]):
        yield f"{info}/licenses/{package}", file.read_bytes(), False
    yield f"{info}/METADATA", metadata(project, version).encode(), False
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False


def make_wheel(bundle, directory):
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = (bundle / "VERSION").read_text().split()[-1]
    tag = "py3-none-" + platform_tag([file for _, file in bundled(bundle)])
    name = f"lockstep-{version}-{tag}.whl"
    record = f"lockstep-{version}.dist-info/RECORD"
    rows = []
    with tempfile.TemporaryDirectory(dir=directory, prefix=".tmp-") as made:  # a wheel of that name is whole
        with zipfile.ZipFile(Path(made, name), "w") as wheel:
            for path, data, can_run in contents(bundle, tag, version, project):
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                rows.append(f"{path},sha256={digest},{len(data)}\n")
                write(wheel, path, data, can_run)
            write(wheel, record, "".join([*rows, f"{record},,\n"]).encode(), False)
        os.replace(Path(made, name), Path(directory, name))
    return name


def write(wheel, path, data, can_run):
    entry = zipfile.ZipInfo(path)  # dated 1980, so the same files give the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if can_run else 0o100644) << 16
    wheel.writestr(entry, data)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517, for pip and build."""
    bundle = os.environ.get("LOCKSTEP_BUNDLE")
    if not bundle:
        raise SystemExit("LOCKSTEP_BUNDLE is not set: build the wheel with launch/wheel, which makes the bundle first")
    return make_wheel(Path(bundle), wheel_directory)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(make_wheel(Path(sys.argv[1]), sys.argv[2]))
