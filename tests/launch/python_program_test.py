#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The program behind the Python package: where it is, what it is told and what it answers."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from python_package import PACKAGE, np

import lockstep
from lockstep import program


class Program(unittest.TestCase):
    """Exit codes, words and places of the program."""

    def test_every_exit_code_has_its_error(self):
        for code, kind in ((2, lockstep.UsageError), (65, lockstep.DataError), (66, lockstep.MissingDataError), (69, lockstep.DeviceError),
                           (70, lockstep.InternalError), (71, lockstep.PeerLostError), (72, lockstep.WrongRankError), (74, lockstep.IoError),
                           (75, lockstep.Stopped), (5, lockstep.Error), (1, lockstep.Error), (0, lockstep.Error)):
            error, mine = program.error_of(code, ""), kind("mine", 9)
            self.assertEqual((type(error), error.code, str(error)), (kind, code, f"the program ended with exit code {code}"))
            self.assertEqual((mine.code, str(mine)), (9, "mine"))
        killed = program.error_of(-9, "")
        self.assertEqual((killed.code, str(killed)), (137, "the program was ended by signal 9"))
        killed = program.error_of(-9, "lockstep: a\nlockstep: runs/a: going on\n\n")
        self.assertEqual((killed.code, str(killed)), (137, "the program was ended by signal 9; it said last: lockstep: runs/a: going on"))
        self.assertEqual(lockstep.Refuted("x").code, 1)

    def test_the_last_sentence_of_the_program_counts(self):
        self.assertEqual(str(program.error_of(2, "lockstep: a\nlockstep: b\nnoise\n")), "b")
        self.assertEqual(str(program.error_of(2, "1\n\n2\n3\n4\n")), "2\n3\n4")

    def test_rank_and_size_are_those_of_the_launcher(self):
        for env, rank, size in (({}, 0, 1), ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, 3, 4), ({"PMI_RANK": "2", "PMI_SIZE": "5"}, 2, 5),
                                ({"SLURM_PROCID": "6", "SLURM_STEP_NUM_TASKS": "7"}, 0, 1),
                                ({"SLURM_PROCID": "6", "SLURM_STEP_NUM_TASKS": "7", "SLURM_STEPID": "0"}, 6, 7), ({"PMI_RANK": "x"}, 0, 1)):
            with self.subTest(env), unittest.mock.patch.dict(os.environ, env, clear=True):
                self.assertEqual((program.launched_rank(), program.launched_size()), (rank, size))

    def test_questions_are_asked_without_the_variables_of_a_launcher(self):
        with unittest.mock.patch.dict(os.environ, OMPI_X="1", PMIX_X="1", PMI_X="1", SLURM_X="1", PMIX_PREFIX="kept", MINE="kept"):
            env = program._alone()
        self.assertEqual([name for name in env if name.endswith("_X")], [])
        self.assertEqual((env["PMIX_PREFIX"], env["MINE"]), ("kept", "kept"))

    def answer(self, text, code=0, ask=lambda: program.answer_and_code(["ask"], (0, 1))):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder, "fake")
            fake.write_text(f"#!/bin/sh\necho 'lockstep: why' >&2\nprintf %s '{text}'\nexit {code}\n")
            fake.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM=str(fake)):
                return ask()

    def test_answers_are_objects_of_the_known_format(self):
        self.assertEqual(self.answer('{"format": 1, "a": 2}', 1), ({"format": 1, "a": 2}, 1))
        for text in ("[]", "{", "word"):
            self.assertRaisesRegex(lockstep.InternalError, "lockstep ask --json did not answer with an object", self.answer, text)
        self.assertRaisesRegex(lockstep.InternalError, "did not answer with an object: ''$", self.answer, "")
        self.assertRaisesRegex(lockstep.UsageError, "lockstep ask answers in format 3, this package reads 1", self.answer, '{"format": 3}')
        self.assertRaisesRegex(lockstep.InternalError, "an object: 'x{200}'$", self.answer, 300 * "x")
        self.assertRaisesRegex(lockstep.DeviceError, "^why$", self.answer, '{"format": 1}', 69)
        self.assertRaisesRegex(lockstep.Error, "^why$", self.answer, "", 1)
        self.assertEqual((self.answer('{"format": 1}', 0, lambda: program.ask("a")), self.answer("text", 0, lambda: program.call("a"))), ({"format": 1}, "text"))
        for code in (1, 3):
            for ask in (program.ask, program.call):
                with self.assertRaisesRegex(lockstep.Error, "^why$") as caught:
                    self.answer('{"format": 1}', code, lambda: ask("a"))
                self.assertEqual(caught.exception.code, code)

    def test_a_program_that_is_not_there_is_told(self):
        with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM="/nowhere/lockstep"):
            self.assertRaisesRegex(lockstep.DeviceError, "no program /nowhere/lockstep: install the wheel", program.program)

    def test_the_program_is_that_of_the_wheel_or_on_path(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"PATH": folder}, clear=True):
            for place in ("lockstep", "bundle/libexec/lockstep"):  # the second one comes before the first
                Path(folder, place).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, place).touch(0o755)
                with unittest.mock.patch.object(program, "BUNDLE", Path(folder, "bundle")):
                    self.assertEqual(program.program(), Path(folder, place).resolve())

    def test_libraries_of_a_bundle_come_before_others(self):
        b, common = program.BUNDLE, dict(program=lambda: program.BUNDLE / "libexec" / "lockstep", _cuda_folders=lambda: ["/cuda"])
        for mpi, between in ((None, f":{b}/mpi"), (Path("/opt/mpi/lib"), ":/opt/mpi/lib"), (Path("/usr/lib"), "")):
            with self.subTest(mpi), unittest.mock.patch.multiple(program, open_mpi_of_launcher=lambda: mpi, **common), \
                    unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": ":/mine"}, clear=True):
                env = program.environment()
                self.assertEqual(env.pop("LD_LIBRARY_PATH"), f"{b}/lib{between}:/mine:/cuda")
                self.assertEqual(env, {} if mpi else {
                    "OPAL_PREFIX": f"{b}", "OPAL_SYSCONFDIR": f"{b}/etc/openmpi", "PMIX_PREFIX": f"{b}/pmix", "PMIX_EXEC_PREFIX": f"{b}/pmix",
                    "PMIX_LIBDIR": f"{b}/pmix/lib", "PMIX_DATADIR": f"{b}/pmix/share", "HWLOC_PLUGINS_PATH": f"{b}/lib/hwloc"})

    def test_jobs_come_with_the_program_or_with_its_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder).resolve()
            for path in ("share/lockstep/jobs", "build/release"):
                (folder / path).mkdir(parents=True)
            for place, name, wanted in (("bin", "jobs", "share/lockstep/jobs"), ("build/release", "jobs", "launch/jobs"), ("build/release", "models", "models")):
                with unittest.mock.patch.object(program, "program", lambda: folder / place / "lockstep"):
                    self.assertEqual(program.shared_folder(name), folder / wanted)

    def test_open_mpi_of_the_launcher_is_found_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher, others = Path(folder, "bin/mpirun"), Path(folder, "others")
            for multiarch, place in ((None, "others"), ("mine", "lib/mine/openmpi/lib"), ("mine", "lib/mine"),
                                            (None, "lib/x86_64-linux-gnu"), (None, "lib64"), (None, "lib")):
                (Path(folder) / place).mkdir(parents=True, exist_ok=True)
                Path(folder, place, "libmpi.so.40").touch()
                for env, wanted in (({"OMPI_COMM_WORLD_SIZE": "1"}, Path(folder, place)), ({}, None)):
                    with self.subTest(place), unittest.mock.patch.dict(os.environ, dict(env, LD_LIBRARY_PATH=f":{others}"), clear=True), \
                            unittest.mock.patch.multiple(program, _launcher=lambda: launcher, sysconfig=unittest.mock.Mock(get_config_var=lambda _: multiarch)):
                        self.assertEqual(program.open_mpi_of_launcher(), wanted)

    def test_the_launcher_is_an_ancestor_of_that_name(self):
        with tempfile.TemporaryDirectory() as folder:
            said = []
            for name in ("orted", "other"):
                shutil.copy(shutil.which("bash"), f"{folder}/{name}")
                code = f"import sys; sys.path.insert(0, {str(PACKAGE / 'src/lockstep')!r}); import program; print(program._launcher())"
                said.append(subprocess.run([f"{folder}/{name}", "-c", f"'{sys.executable}' -c \"{code}\"; exit $?"], capture_output=True, text=True, timeout=60))
            self.assertEqual(said[0].stdout, f"{os.path.realpath(folder)}/orted\n", said[0].stderr)
            self.assertNotIn("/other", said[1].stdout)

    def test_folders_of_the_loader_and_of_cuda_are_known(self):
        self.assertEqual([program._is_searched_anyway(Path(folder)) for folder in ("/usr/lib", "/lib", "/usr/lib/openmpi/lib", "/opt/mpi/lib")],
                         [True, True, False, False])
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, CUDA_HOME=folder):
            self.assertNotIn(f"{folder}/lib64", program._cuda_folders())
            os.mkdir(f"{folder}/lib64")
            self.assertEqual(program._cuda_folders()[0], f"{folder}/lib64")

    def test_a_command_that_cannot_start_says_why(self):
        for place, sentence in (("/nowhere/lockstep", "lockstep: no program /nowhere/lockstep: install"), ("/", "lockstep: /: Permission denied$")):
            with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM=place):
                self.assertRaisesRegex(SystemExit, sentence, program.main)

    def test_a_command_without_its_package_is_told(self):
        done = subprocess.run([sys.executable, "-I", "-S", PACKAGE / "scripts" / "lockstep"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, f"lockstep: the Python package lockstep is not installed for {sys.executable}\n"))

    def test_steps_that_are_not_proved_count_where_the_program_says_so(self):
        answer, run = {"refuted": [], "not_proved": [{"from": 1, "to": 2, "why": "why"}]}, lockstep.Run("a")
        for place, error in ((2, lockstep.MissingDataError), (3, lockstep.DeviceError)):
            with unittest.mock.patch.object(lockstep.run, "answer_and_code", lambda _, allowed: (answer, allowed[place])):
                self.assertRaisesRegex(error, "^a: steps 1 to 2 are not proved: why$", run.prove)
        with unittest.mock.patch.object(lockstep.run, "answer_and_code", lambda *_, **__: (answer, 0)):
            self.assertEqual(run.prove(), answer)

    def test_a_published_hash_is_asked_for(self):
        for published in (True, False, None):
            with unittest.mock.patch.object(lockstep.run, "ask", lambda *asked: {"published_hash": published if asked == ("hash", "a") else 0}):
                self.assertIs(lockstep.Run("a").is_published, published)

    def test_colours_of_another_size_are_told_by_their_sides(self):
        with unittest.mock.patch.object(lockstep.run, "ask", lambda *_: {"model": {"height": "8", "width": "6"}}):
            self.assertRaisesRegex(lockstep.UsageError, "^images: 5 x 4 pixels, height first; a was trained on 8 x 6: ",
                                   lockstep.Run("a").scores, np.zeros((2, 3, 5, 4), np.uint8))

    def test_scores_of_colours_are_asked_in_parts(self):
        x, asked = np.arange(2 * 3 * 8 * 6, dtype=np.uint16).astype(np.uint8).reshape(2, 3, 8, 6), []

        def call(*arguments):
            asked.append((*arguments[:2], *arguments[3:], Path(arguments[2]).read_bytes()))
            return json.dumps({"top": [{"class": "1", "probability": len(asked) / 2}]}) + "\n"

        model = {"model": {"height": "8", "width": "6", "classes": "2"}}
        with unittest.mock.patch.multiple(lockstep.run, _AT_ONCE=1, call=call, ask=lambda *_: model):
            np.testing.assert_array_equal(lockstep.Run("a").scores(x), [[0, 0.5], [0, 1]])
        head = bytes([0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0, 3])
        self.assertEqual(asked, [("predict", "a", "--json", "--top", "2", head + part.transpose(1, 2, 0).tobytes()) for part in x])

    def test_columns_and_names_of_classes(self):
        for values, kind, wanted in (([1, 2], np.int64, [1, 2]), ([1, None, True], np.float64, [1, np.nan, np.nan]), ([0.5, 2], np.float64, [0.5, 2]),
                                     ([2**63 - 1], np.int64, [2**63 - 1]), ([2**63, 2**64 - 1], np.uint64, [2**63, 2**64 - 1])):
            column = lockstep.run._column(values)
            np.testing.assert_array_equal(column, wanted)
            self.assertEqual(column.dtype, kind)
        self.assertFalse(lockstep.run._is_number(True))
        self.assertEqual(lockstep.run._class_names({"model": {"classes": "3"}}), ["0", "1", "2"])
        self.assertEqual(lockstep.run._class_names({"data": {"class_names": "a\nb"}}), ["a", "b"])

    def test_a_run_is_named_with_its_checkpoint(self):
        run = lockstep.Run("runs/a")
        self.assertEqual([(str(one.path), one.checkpoint) for one in (run, lockstep.Run("runs/a@best@ema"), run.best, run.at(epoch=3), run.at(step=500), run.at("last"))],
                         [("runs/a", "last"), ("runs/a", "best@ema"), ("runs/a", "best"), ("runs/a", "epoch:3"), ("runs/a", "step:500"), ("runs/a", "last")])
        self.assertEqual((repr(run.best), run.best.name, lockstep.Run("@x").checkpoint), ("Run('runs/a@best')", "runs/a@best", "last"))
        self.assertEqual(run, lockstep.Run("runs/../runs/a"))
        self.assertEqual(hash(run), hash(lockstep.Run("runs/../runs/a")))
        self.assertNotEqual(run, run.best)
        self.assertNotEqual(run, "runs/a")


if __name__ == "__main__":
    unittest.main()
