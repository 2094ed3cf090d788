#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Arguments of lockstep.train as the program gets them, and how it is started, followed and ended."""
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

from python_package import np

import lockstep
from lockstep import training


class Flushed(io.StringIO):
    """A stream of which one sees what was flushed."""

    seen = ""

    def flush(self):
        self.seen = self.getvalue()


class Training(unittest.TestCase):
    """Keys of a job, and the program while it trains: scripts take its place."""

    def test_spellings_of_a_key(self):
        wanted = {"train.optimizer.lr": 0.1}
        for given in ({"train__optimizer__lr": 0.1}, {"train.optimizer.lr": 0.1}, {"train": {"optimizer": {"lr": 0.1}}},
                      {"train": {"optimizer.lr": 0.1}}):
            self.assertEqual(training.flat_keys(given), wanted)

    def test_what_is_no_key_or_no_value_is_told(self):
        self.assertRaisesRegex(lockstep.UsageError, r"^a\.1 is not a key: keys of a job are text$", training.flat_keys, {"a": {1: 2}})
        self.assertRaisesRegex(lockstep.UsageError, r"^a\.-b is not a key, and options", training.flat_keys, {"a": {"-b": 2}})
        for value in ({1}, None, [{1}]):
            self.assertRaisesRegex(lockstep.UsageError, "is not a value of a job: give a number", training.override_text, value)
        self.assertRaisesRegex(lockstep.UsageError, r"^\{1\} is not a value of a job", training._job_file, {"a": {1}}, Path("nowhere"))

    def test_dicts_become_job_files_and_names_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = training._job_file({"model": Path("a/b"), "train.optimizer.lr": 0.5, "train": {"epochs": 3}}, Path(folder))
            self.assertEqual(json.loads(path.read_text()), {"model": "a/b", "train": {"optimizer": {"lr": 0.5}, "epochs": 3}})
            path = training._job_file({"train": {"epochs": np.int64(3)}, "data.mean": np.float32([0.5, 0.25]), "train.freeze": [Path("a")]}, Path(folder))
            self.assertEqual(json.loads(path.read_text()), {"train": {"epochs": 3, "freeze": ["a"]}, "data": {"mean": [0.5, 0.25]}})
            path = training._job_file({"run.dir": "\U0001f600", "model": "\udcff"}, Path(folder))
            self.assertEqual(path.read_bytes(), b'{"run": {"dir": "\xf0\x9f\x98\x80"}, "model": "\xed\xb3\xbf"}')
            for name in ("nosuch.yaml", "no/such"):
                self.assertEqual(training._job_file(name, Path(folder)), Path(name))
            with unittest.mock.patch.object(training, "shared_folder", lambda name: Path(folder)):
                (Path(folder) / "mine.yaml").write_text("model: net")
                self.assertEqual(training._job_file("mine", Path(folder)), Path(folder) / "mine.yaml")
                self.assertRaisesRegex(lockstep.UsageError, "there is no job 'other': give the path of a job file, a dict, or one of job, mine$",
                                       training._job_file, "other", Path(folder))

    def test_events_are_handed_on_once_they_are_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            run_file, metrics, events = Path(folder, "run"), Path(folder, "metrics.jsonl"), []
            reader = training._Events(run_file, events.append)
            reader.hand_on()
            run_file.write_text(folder + "\n")
            reader.hand_on()
            for text, wanted in (('{"a": 1}\n{"b"', [{"a": 1}]), (': 2}\n', [{"a": 1}, {"b": 2}]),
                                 (f'damaged\n[3]\n{"[" * 100_000}\n{{"c": 4}}\n', [{"a": 1}, {"b": 2}, {"c": 4}])):
                with open(metrics, "a", encoding="utf-8") as file:
                    file.write(text)
                reader.hand_on()
                self.assertEqual(events, wanted)
            reader.close()

    def trained(self, script, quiet=False, **env):
        """Run a program that is this script: the directory or the error that it leaves, and what Python printed at once."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(Flushed()) as out, contextlib.redirect_stderr(Flushed()) as err, \
                unittest.mock.patch.dict(os.environ, env, HERE=folder), unittest.mock.patch.object(training.time, "monotonic", lambda: 0.0):
            try:
                result = training._Training(["/bin/sh", "-c", script], Path(folder) / "run", None, quiet).finish()
            except (lockstep.Error, SystemExit) as error:
                result = error
        return result, out.seen, err.seen

    def test_what_the_program_says_is_printed_but_for_the_error(self):
        end = "; echo a >&2; echo b >&2; echo out; echo there >$LOCKSTEP_RUN_FILE"
        self.assertEqual(self.trained("true" + end), (Path("there"), "out\n", "a\nb\n"))
        self.assertEqual(self.trained("true" + end, quiet=True), (Path("there"), "", ""))
        error, _, said = self.trained("echo note >&2; echo lockstep: why >&2; exit 65")
        self.assertEqual((type(error), str(error), said), (lockstep.DataError, "why", "note\n"))
        error, _, said = self.trained("echo lockstep: why >&2; echo noise >&2; exit 65")
        self.assertEqual((str(error), said), ("why", "noise\n"))
        error, _, said = self.trained("echo lockstep: note >&2; echo last >&2; kill -KILL $$")
        self.assertEqual((str(error), said), ("the program was ended by signal 9; it said last: last", "lockstep: note\n"))
        stopped, _, said = self.trained("echo saved >&2; exit 75")
        self.assertEqual((type(stopped), str(stopped), said), (lockstep.Stopped, "saved on request: the same call goes on", "saved\n"))
        self.assertRegex(str(self.trained("true")[0]), "/bin/sh is older than this package")

    def test_any_thread_may_train(self):
        results = []
        thread = threading.Thread(target=lambda: results.append(self.trained("echo there >$LOCKSTEP_RUN_FILE")[0]))
        thread.start()
        thread.join()
        self.assertEqual(results, [Path("there")])

    def test_its_arguments_are_a_command_line(self):
        said = []
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(Flushed()) as out, \
                unittest.mock.patch.object(training, "_has_been_a_rank", False):
            fake, job, x = Path(folder, "fake"), Path(folder, "job.yaml"), np.zeros((1, 2, 3), np.uint8)
            fake.write_text("""#!/bin/sh\ncat "$2"; shift 2; echo "|$*"; echo '{"event": "end"}' >metrics.jsonl; pwd >$LOCKSTEP_RUN_FILE\n""")
            fake.chmod(0o755)
            job.write_text("mine")
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(folder)
            with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM=str(fake), XDG_CACHE_HOME=folder):
                run = lockstep.train({"model": "net"}, data={"set": "idx"}, ranks=2, progress=said.append, train__epochs=3)
                lockstep.train(job, data=(x, [0], x, [0]), classes=["a"])
                for ranks in (np.int64(3), 2.5, True):  # the program refuses what is no number of ranks
                    lockstep.train(job, ranks=ranks)
                self.assertRaises(lockstep.UsageError, lockstep.train, job, data={"set": "idx"}, classes=["a"])
                lockstep.train(job, quiet=True)
                with unittest.mock.patch.dict(os.environ, OMPI_COMM_WORLD_SIZE="2"):
                    self.assertRaisesRegex(lockstep.UsageError, "can train once", lockstep.train, job)
            [kept] = Path(folder, "lockstep/arrays").iterdir()
            self.assertEqual((kept / "classes.txt").read_text(), "a\n")
        self.assertEqual((run.path.resolve(), said), (Path(os.path.realpath(folder)), [{"event": "end"}]))
        self.assertEqual(out.seen, '{"model": "net"}|train.epochs=3 data.set=idx parallel.backend=thread parallel.ranks=2\n'
                         f"mine|data.set=idx data.root={kept}\n" +
                         "".join(f"mine|parallel.backend=thread parallel.ranks={ranks}\n" for ranks in ("3", "2.5", "true")))

    def test_wrong_arguments_do_not_use_up_the_one_training_of_a_rank(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(training, "_has_been_a_rank", False):
            fake = Path(folder, "fake")
            fake.write_text("#!/bin/sh\npwd >$LOCKSTEP_RUN_FILE\n")
            fake.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM=str(fake), OMPI_COMM_WORLD_SIZE="2"):
                self.assertRaisesRegex(lockstep.UsageError, "there is no job 'mnits'", lockstep.train, "mnits")
                self.assertRaisesRegex(lockstep.UsageError, "None is not a value of a job", lockstep.train, "job.yaml", train__epochs=None)
                self.assertEqual(lockstep.train("job.yaml", quiet=True).path.resolve(), Path.cwd())
                self.assertRaisesRegex(lockstep.UsageError, "can train once", lockstep.train, "job.yaml")

    def test_without_standard_output_it_trains(self):
        with unittest.mock.patch.multiple(sys, stdout=None, __stdout__=None), tempfile.TemporaryDirectory() as folder:
            run = training._Training(["/bin/sh", "-c", "echo there >$LOCKSTEP_RUN_FILE"], Path(folder) / "run", None, False)
            self.assertEqual(run.finish(), Path("there"))

    def test_other_ranks_return_where_the_run_has_ended(self):
        for kinds, code in (("start end epoch end", None), ("end", None), ("start end epoch", 0), ("", 0)):
            script = "".join(f"echo '{{\"event\": \"{kind}\"}}'; " for kind in kinds.split())
            result = self.trained("{ :; " + script + '} >$HERE/metrics.jsonl; echo "$HERE" >$LOCKSTEP_RUN_FILE', OMPI_COMM_WORLD_RANK="1")[0]
            self.assertEqual((isinstance(result, Path), getattr(result, "code", None)), (code is None, code), kinds)

    def test_a_signal_before_the_program_has_begun_reaches_it(self):
        def start(*arguments, **named):
            os.kill(os.getpid(), signal.SIGUSR1)
            return begin(*arguments, **named)

        begin = subprocess.Popen
        with unittest.mock.patch.object(training.subprocess, "Popen", start):
            error = self.trained("sleep 5; echo there >$LOCKSTEP_RUN_FILE")[0]
        self.assertEqual((type(error), str(error), error.code), (lockstep.Error, "the program was ended by signal 10", 138))

    def test_progress_is_looked_for_all_the_time(self):
        run = training._Training([], Path("run"), None, False)
        run._process, run._events, run._print_held = unittest.mock.Mock(), unittest.mock.Mock(), unittest.mock.Mock()
        run._process.wait.side_effect = [subprocess.TimeoutExpired("program", 0.1), 0]
        self.assertEqual(run._wait(), 0)
        self.assertEqual(run._process.wait.call_args_list, 2 * [unittest.mock.call(timeout=0.1)])
        self.assertEqual((run._events.hand_on.call_count, run._print_held.call_args_list), (2, 2 * [unittest.mock.call(0.5)]))

    def test_progress_that_raises_ends_the_program_and_leaves_nothing_open(self):
        def fail(event):
            self.assertEqual([thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()], [True])
            raise KeyError(event["event"])

        script = """echo '{"event": "start"}' >$HERE/metrics.jsonl; echo "$HERE" >$LOCKSTEP_RUN_FILE; exec sleep 30"""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, HERE=folder):
            run = training._Training(["/bin/sh", "-c", script], Path(folder) / "run", fail, True)
            self.assertRaisesRegex(KeyError, "start", run.finish)
        self.assertEqual((run._process.returncode, run._events._file.closed), (-signal.SIGINT, True))

    def test_values_as_the_command_line_has_them(self):
        for value, text in ((3, "3"), (0.5, "0.5"), (True, "true"), ("adam", "adam"), ([0.9, 0.99], "[0.9, 0.99]"),
                            (Path("a/b"), "a/b"), (np.float64(0.25), "0.25"), (np.array([1, 2]), "[1, 2]"), (np.True_, "true"),
                            ((0.5, np.float32(0.25)), "[0.5, 0.25]"), (["\U0001f600"], '["\U0001f600"]')):
            self.assertEqual(training.override_text(value), text)


if __name__ == "__main__":
    unittest.main()
