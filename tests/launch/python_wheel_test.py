#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The wheel of the Python package, made of a bundle of a few files, and its command."""
import base64
import csv
import errno
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock
import zipfile
from pathlib import Path

from python_package import InAFolder, PACKAGE


# Stand-ins: readelf reads what an "ELF" file below says of itself; dpkg knows two packages, and of no other library.
READELF = r"""#!/bin/sh
[ $# = 3 ] && [ "$2" = -W ] && grep -q ELF "$3" || exit 1
case $1 in
  -d) sed -n 's/^needs \(.*\)/ 0x0000000000000001 (NEEDED)             Shared library: [\1]/p' "$3" ;;
  -V) sed -n 's/^version \(.*\)/  0x0010:   Name: GLIBC_\1  Flags: none  Version: 4/p' "$3" ;;
esac
"""
DPKG = """#!/bin/sh
[ "$*" = "-S */libdeep.so.1 */libmpi.so.40 */libopen-pal.so.40 */libown.so.1 */mca_btl_tcp.so" ] || exit 2
echo lockstep-test-own:amd64: /usr/lib/libown.so.1
echo lockstep-test-bare: /usr/lib/libdeep.so.1
exit 1
"""
TAKEN = {"libexec/lockstep": ["needs libown.so.1", "needs libmpi.so.40", "needs libz.so.1", "needs libc.so.6", "version 2.9"],
         "libexec/lockstep_nccl.so": ["needs libown.so.1", "version 2.28", "version 2.17"],
         "lib/libown.so.1": ["needs libdeep.so.1"], "lib/libdeep.so.1": ["version 2.4"],
         "lib/libmpi.so.40": ["needs libopen-pal.so.40"], "lib/libopen-pal.so.40": [], "lib/openmpi/mca_btl_tcp.so": []}
LEFT = {"lib/libz.so.1": [], "lib/libstdc++.so.6": [], "lib/libgcc_s.so.1": [], "libexec/mpirun": [], "libexec/orted": []}
TEXTS = {"libexec/environment.sh": "", "bin/lockstep": "", "tests/gpu/run": "", "launch/jobs/mnist.yaml": "version 2.99\n",
         "share/lockstep/jobs/mnist.yaml": "version 2.99\n", "LICENSE": "as you like\n", "VERSION": "lockstep 1.2.3\n"}
COMMAND = "lockstep-1.2.3.data/scripts/lockstep"
RUNS = ("libexec/lockstep", "lib/openmpi/mca_btl_tcp.so")


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


@unittest.skipUnless(sys.version_info >= (3, 11), "Python 3.11 builds it")
class Wheel(InAFolder):
    """A wheel of a bundle of a few files: made by hand, and as pip makes it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, lines in {**TAKEN, **LEFT}.items():
            write(Path("bundle", name), "\n".join(["\x7fELF", *lines, ""]), 0o755 if name in RUNS else 0o644)
        for name, text in TEXTS.items():
            write(Path("bundle", name), text)
        write(Path("tools/readelf"), READELF, 0o755)
        write(Path("tools/dpkg"), DPKG, 0o755)
        write(Path("documents/lockstep-test-own/copyright"), "its authors\n")
        shutil.copytree(PACKAGE, "package", ignore=shutil.ignore_patterns("__pycache__"))
        write(Path("package/src/lockstep/notes.txt"), "no part of the package\n")
        cls.path = os.environ["PATH"]
        cls.enterClassContext(unittest.mock.patch.dict(os.environ, PATH=f"{cls.folder}/tools:{cls.path}", LOCKSTEP_BUNDLE="bundle"))
        cls.enterClassContext(unittest.mock.patch.object(sys, "path", ["package", *sys.path]))
        cls.backend = importlib.import_module("wheel_backend")
        for folder in ("one", "two", "three"):
            os.mkdir(folder)
        cls.said = subprocess.run([sys.executable, "package/wheel_backend.py", "bundle", "one"], capture_output=True, text=True, timeout=60)
        cls.name = cls.backend.build_wheel("two")
        with unittest.mock.patch.object(cls.backend, "DOCUMENTS", Path("documents")):
            cls.backend.build_wheel("three")
        cls.wheel, cls.third = (zipfile.ZipFile(Path(folder, cls.name)) for folder in ("one", "three"))

    @classmethod
    def tearDownClass(cls):
        cls.wheel.close()
        cls.third.close()
        super().tearDownClass()

    def test_name_says_what_it_needs(self):
        self.assertEqual(self.name, f"lockstep-1.2.3-py3-none-manylinux_2_28_{os.uname().machine}.whl")
        self.assertEqual((self.said.returncode, self.said.stdout), (0, self.name + "\n"), self.said.stderr)

    def test_without_arguments_it_says_what_it_takes(self):
        done = subprocess.run([sys.executable, PACKAGE / "wheel_backend.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("Builds the wheel: wheel_backend.py BUNDLE DIRECTORY"), done.stderr)

    def test_pip_is_told_to_name_a_bundle(self):
        with unittest.mock.patch.dict(os.environ, LOCKSTEP_BUNDLE=""):
            self.assertRaisesRegex(SystemExit, "LOCKSTEP_BUNDLE is not set: build the wheel with launch/wheel", self.backend.build_wheel, "two")

    def test_what_readelf_cannot_read_is_not_taken_for_a_library_without_needs(self):
        self.assertRaises(subprocess.CalledProcessError, self.backend.needed, "bundle/VERSION")

    def test_readelf_says_it_as_the_stand_in_does(self):
        with unittest.mock.patch.dict(os.environ, PATH=self.path):
            if not shutil.which("readelf"):
                self.skipTest("no readelf (binutils)")
            self.assertIn("libc.so.6", self.backend.needed(shutil.which("true")))
            self.assertRegex(self.backend.platform_tag([shutil.which("true")]), r"^manylinux_2_[1-9]")

    def test_copyrights_of_debian_come_along(self):
        self.assertEqual(set(self.third.namelist()) - set(self.wheel.namelist()), {"lockstep-1.2.3.dist-info/licenses/lockstep-test-own"})
        self.assertEqual(self.third.read("lockstep-1.2.3.dist-info/licenses/lockstep-test-own"), b"its authors\n")
        with unittest.mock.patch.dict(os.environ, PATH=""):  # elsewhere there is no dpkg
            self.assertEqual(list(self.backend.copyrights([])), [])

    def test_same_files_give_the_same_bytes(self):
        self.assertEqual(Path("one", self.name).read_bytes(), Path("two", self.name).read_bytes())

    def test_a_wheel_that_cannot_be_finished_leaves_an_earlier_one_as_it_was(self):
        write(Path("four", self.name), "earlier")
        with unittest.mock.patch.object(self.backend, "write", side_effect=OSError(errno.ENOSPC, "full")):
            self.assertRaises(OSError, self.backend.build_wheel, "four")
        self.assertEqual([(file.name, file.read_text()) for file in Path("four").iterdir()], [(self.name, "earlier")])

    def test_record_has_every_file(self):
        rows = {path: (digest, size) for path, digest, size in csv.reader(self.wheel.read("lockstep-1.2.3.dist-info/RECORD").decode().splitlines())}
        self.assertEqual(set(rows), set(self.wheel.namelist()))
        for path in self.wheel.namelist():
            data = self.wheel.read(path)
            wanted = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            self.assertIn(rows[path], ((wanted, str(len(data))), ("", "")), path)

    def test_it_says_what_it_is(self):
        licence, about, wheel = (self.wheel.read("lockstep-1.2.3.dist-info/" + name).decode() for name in ("licenses/LICENSE", "METADATA", "WHEEL"))
        self.assertEqual(licence, "as you like\n")
        self.assertTrue(about.startswith("Metadata-Version: 2.1\nName: lockstep\nVersion: 1.2.3\nSummary: "), about)
        for line in ("License: MIT", "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.21", "Classifier: Typing :: Typed"):
            self.assertIn(line, about.splitlines())
        tag = self.name[len("lockstep-1.2.3-"):-len(".whl")]
        self.assertEqual(wheel, f"Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: false\nTag: {tag}\n")

    def test_it_has_the_package_the_program_and_open_mpi_apart(self):
        package = {str(file.relative_to(PACKAGE / "src")) for file in PACKAGE.glob("src/lockstep/*.*") if file.suffix in (".py", ".typed")}
        program = {name.replace("lib/libmpi", "mpi/libmpi").replace("lib/libopen-pal", "mpi/libopen-pal") for name in (*TAKEN, "share/lockstep/jobs/mnist.yaml")}
        about = {"lockstep-1.2.3.dist-info/" + name for name in ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE")}
        self.assertEqual(set(self.wheel.namelist()), package | {"lockstep/_bundle/" + name for name in program} | about | {COMMAND})
        self.assertIn("lockstep/py.typed", package)

    def test_what_can_be_run_can_be_run_and_times_are_left_out(self):
        run = {COMMAND, *("lockstep/_bundle/" + name for name in RUNS)}
        for entry in self.third.infolist():
            self.assertEqual((entry.external_attr >> 16, entry.date_time, entry.compress_type),
                             (0o100755 if entry.filename in run else 0o100644, (1980, 1, 1, 0, 0, 0), zipfile.ZIP_DEFLATED), entry.filename)

    def test_command_becomes_the_program(self):
        self.wheel.extractall("site")
        write(Path("site/lockstep/_bundle/libexec/lockstep"), '#!/bin/sh\necho "$#:$*"\necho "$LD_LIBRARY_PATH"\n', 0o755)
        env = {name: value for name, value in os.environ.items() if name != "LOCKSTEP_PROGRAM"}
        done = subprocess.run([sys.executable, Path("site", COMMAND), "--version", "a b"], env=dict(env, PYTHONPATH="site"), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (0, ["2:--version a b"]), done.stderr)
        self.assertIn(f"{Path('site').resolve()}/lockstep/_bundle/lib:", done.stdout)


if __name__ == "__main__":
    unittest.main()
