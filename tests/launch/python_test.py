#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The Python package over the program of this build: training, runs, errors, signals, mpirun, and the wheel itself.

Exit code 77: there is no numpy. launch/wheel --check tries the wheel in an environment of its own.
"""
import base64
import contextlib
import csv
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import zipfile
from pathlib import Path

try:
    import numpy as np
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's has it, if any has
    print("skipped: no numpy (python3-numpy)")
    sys.exit(77)

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "launch" / "python"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PACKAGE / "src"))
os.environ.setdefault("LOCKSTEP_PROGRAM", str(REPO / "build" / "release" / "lockstep"))
os.environ.update(PYTHONDONTWRITEBYTECODE="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

import lockstep  # noqa: E402
from lockstep import files, program, training  # noqa: E402

MADE = {"set": "synthetic", "train_samples": 256, "test_samples": 64}
SHORT = {"data": MADE, "data__global_batch": 128, "parallel__grain": 32, "train__epochs": 2, "parallel__device": "cpu", "quiet": True}
LONG = dict(SHORT, data=dict(MADE, train_samples=2560), train__epochs=100)


def bars(count, seed):
    """8 x 6 pictures of bars that lie (0) or stand (1)."""
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 40, (count, 8, 6), dtype=np.uint8), np.arange(count) % 2
    for image, label, at in zip(x, y, random.integers(1, 5, count)):
        image[(at, slice(None)) if label == 0 else (slice(None), at)] = 255
    return x, y


class InAFolder(unittest.TestCase):
    """Each class of tests works in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.before = os.getcwd()
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        os.environ["XDG_CACHE_HOME"] = cls.folder + "/cache"

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        shutil.rmtree(cls.folder)


class TrainingOnArrays(InAFolder):
    """One run on pictures of bars, and what can be asked of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = (*bars(256, 1), *bars(64, 2))
        cls.events = []
        cls.run_of_bars = lockstep.train({"model": "linear", "train.epochs": 6, "parallel": {"grain": 16, "device": "cpu"}},
                                         data=cls.data, classes=["<lies>", "stands"], data__global_batch=32, ranks=2,
                                         train={"optimizer": {"lr": 0.1}}, progress=cls.events.append, quiet=True)

    def test_it_has_learnt_them(self):
        self.assertGreater(self.run_of_bars.metrics["test_accuracy"][-1], 0.9)
        self.assertEqual(self.run_of_bars.state, "finished")

    def test_progress_had_every_event(self):
        self.assertEqual(self.events, self.run_of_bars.events())
        self.assertEqual([event["event"] for event in self.events].count("epoch"), 6)

    def test_columns_have_types_of_numpy(self):
        metrics = self.run_of_bars.metrics
        np.testing.assert_array_equal(metrics["epoch"], np.arange(1, 7))
        self.assertEqual(metrics["epoch"].dtype, np.int64)
        self.assertEqual(metrics["train_loss"].dtype, np.float64)

    def test_config_has_what_was_asked_for(self):
        config = self.run_of_bars.config
        self.assertEqual((config["model"], config["train"]["epochs"], config["train"]["optimizer"]["lr"]), ("linear", 6, 0.1))
        self.assertEqual((config["data"]["global_batch"], config["parallel"]["ranks"], config["run"]["trail"]), (32, 2, True))

    def test_config_is_what_a_yaml_reader_finds_in_the_job(self):
        run = lockstep.train({"model": "linear"}, run__dir="whole", run__report=False, data__augment=[{"flip": {"horizontal": 0.5}}],
                             train__groups=[{"match": "fc.*", "lr_factor": 0.5}], train__freeze=["*.bias"], train__optimizer__lr=1e-5,
                             **dict(SHORT, data=self.data))
        config = run.config
        self.assertEqual(config["data"]["augment"], [{"flip": {"horizontal": 0.5, "vertical": 0}}])
        self.assertEqual(config["train"]["groups"], [{"match": "fc.*", "lr_factor": 0.5}])
        self.assertEqual((config["train"]["freeze"], config["train"]["optimizer"]["lr"]), (["*.bias"], 1e-5))
        self.assertEqual(config["run"]["trace"], "off")
        try:
            import yaml  # reads YAML 1.1: off is false, and 1e-05 is text
        except ImportError:
            self.skipTest("no PyYAML (python3-yaml)")
        self.assertEqual(yaml.safe_load((run.path / "job.yaml").read_text()), config)
        Path("dumped.yaml").write_text(yaml.safe_dump(config))
        self.assertEqual(lockstep.train("dumped.yaml", run__dir="again", quiet=True).sha256, run.sha256)

    def test_pictures_of_another_size_are_refused(self):
        _, _, x, _ = self.data
        for ask in (self.run_of_bars.predict, self.run_of_bars.probabilities, self.run_of_bars.scores):
            self.assertRaisesRegex(lockstep.UsageError, "images: 6 x 8 pixels, height first; .* was trained on 8 x 6", ask, x.transpose(0, 2, 1))

    def test_classes_go_with_arrays(self):
        self.assertRaisesRegex(lockstep.UsageError, "names the classes of arrays", lockstep.train, "mnist", classes=["a"], quiet=True)

    def test_version_is_that_of_the_program(self):
        said = subprocess.run([os.environ["LOCKSTEP_PROGRAM"], "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(f"lockstep {lockstep.__version__}\n", said)
        self.assertFalse(hasattr(lockstep, "nosuch"))

    def test_weights_are_those_of_the_hash(self):
        weights = self.run_of_bars.weights
        self.assertEqual({name: array.shape for name, array in weights.items()}, {"fc.weight": (2, 48), "fc.bias": (2,)})
        self.assertEqual(hashlib.sha256(b"".join(array.tobytes() for array in weights.values())).hexdigest(), self.run_of_bars.sha256)

    def test_predictions_are_as_good_as_the_evaluation(self):
        _, _, x, y = self.data
        probabilities = self.run_of_bars.probabilities(x)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(self.run_of_bars.predict(x), probabilities.argmax(axis=1))
        with unittest.mock.patch.object(lockstep.run, "_AT_ONCE", 10):
            np.testing.assert_array_equal(self.run_of_bars.scores(x[:25]), probabilities[:25])
        self.assertEqual((self.run_of_bars.predict(x) == y).sum(), self.run_of_bars.evaluate()["correct"])

    def test_outputs_of_squared_errors_are_no_probabilities(self):
        _, _, x, _ = self.data
        run = lockstep.train({"model": "linear"}, train__loss="mse", **dict(SHORT, data=self.data))
        self.assertRaisesRegex(ValueError, "gives no probabilities; scores", run.probabilities, x)
        np.testing.assert_array_equal(run.predict(x), run.scores(x).argmax(axis=1))

    def test_best_is_a_run_at_a_checkpoint(self):
        best = self.run_of_bars.best
        self.assertEqual((best.path, best.checkpoint), (self.run_of_bars.path, "best"))
        self.assertEqual(best.evaluate()["accuracy"], max(self.run_of_bars.metrics["test_accuracy"]))
        self.assertEqual(self.run_of_bars.at(epoch=6).sha256, self.run_of_bars.sha256)
        self.assertRaisesRegex(lockstep.UsageError, "held no samples", best.evaluate, validation=True)
        self.assertEqual(best.evaluate(train=True)["samples"], 256)
        self.assertEqual(len(best.evaluate(classes=True)["confusion"]), 2)
        self.assertIsNone(best.is_published)

    def test_an_average_and_an_import_are_asked_as_a_run_is(self):
        _, _, x, _ = self.data
        run = lockstep.train({"model": "linear"}, train__ema=0.5, run__dir="averaged", **dict(SHORT, data=self.data))
        for at in ("averaged", "averaged@ema", "averaged@epoch:2@ema"):
            named = lockstep.Run(at)
            self.assertEqual(hashlib.sha256(b"".join(array.tobytes() for array in named.weights.values())).hexdigest(), named.sha256)
            np.testing.assert_array_equal(named.probabilities(x), named.scores(x))
            self.assertEqual((named.path.resolve(), named.state), (run.path.resolve(), "finished"))
        self.assertNotEqual(lockstep.Run("averaged@ema").sha256, run.sha256)
        weights = program.ask("inspect", "averaged")["checkpoint"] + "/model.safetensors"
        program.call("import", weights, "averaged/job.yaml", "imported", "run.resume=never")
        np.testing.assert_array_equal(lockstep.Run("imported").probabilities(x), run.probabilities(x))

    def test_runs_lists_it(self):
        self.assertIn(self.run_of_bars, lockstep.runs())
        self.assertRaises(lockstep.MissingDataError, lockstep.runs, "nowhere-else")
        os.mkdir("runs/nothing")
        self.assertNotIn(lockstep.Run("runs/nothing"), lockstep.runs())
        self.assertRaisesRegex(lockstep.MissingDataError, "there is no run in this folder", lambda: lockstep.Run("runs/nothing").summary)

    def test_proof_holds_until_metrics_are_changed(self):
        self.assertEqual(self.run_of_bars.prove()["verdict"], "proved")
        some = self.run_of_bars.prove(sample=3, ranks=2)
        self.assertEqual((some["verdict"], some["steps_asked"], some["ranks"]), ("proved", 3, 2))
        shutil.copytree(self.run_of_bars.path, "changed")
        metrics = Path("changed/metrics.jsonl")
        metrics.write_text(metrics.read_text().replace('"train_samples":256', '"train_samples":255'))
        with self.assertRaisesRegex(lockstep.Refuted, "changed: refuted at step .*metrics.jsonl"):
            lockstep.Run("changed").prove()

    def test_verify_finds_a_damaged_byte(self):
        self.assertTrue(self.run_of_bars.verify()["good"])
        shutil.copytree(self.run_of_bars.path, "damaged")
        model = sorted(Path("damaged/checkpoints").iterdir())[-1] / "model.safetensors"
        model.write_bytes(model.read_bytes()[:-1] + b"\x7f")
        self.assertFalse(lockstep.Run("damaged").verify()["good"])

    def test_report_is_written(self):
        self.assertEqual(self.run_of_bars.report(), self.run_of_bars.path / "report.html")
        self.assertIn("<html", self.run_of_bars.report("page.html").read_text())

    def test_html_for_notebooks_is_escaped(self):
        shutil.copytree(self.run_of_bars.path, "<script>alert(1)")
        page = lockstep.Run("<script>alert(1)")._repr_html_()
        self.assertNotIn("<script", page)
        self.assertIn("&lt;script&gt;", page)
        self.assertIn("<th>epochs</th><td>6 of 6</td>", page)
        self.assertIn("<th>test accuracy</th><td>{:.2f} %</td>".format(100 * self.run_of_bars.metrics["test_accuracy"][-1]), page)
        self.assertIn("<th>best</th>", page)
        self.assertRegex(page, r"(?s)<pre>\s*loss, by step:\n.*\naccuracy, %, by step:\n.* \d+\n</pre>")
        shutil.copytree(self.run_of_bars.path, "held-out")
        metrics = Path("held-out/metrics.jsonl")
        metrics.write_text(metrics.read_text().replace('"test_', '"validation_'))
        self.assertIn("<th>best validation</th>", lockstep.Run("held-out")._repr_html_())

    def test_same_arrays_are_written_once(self):
        self.assertEqual(files.write_set(self.data, ["<lies>", "stands"]), files.write_set(self.data, ["<lies>", "stands"]))
        kind, folder = files.write_set(self.data)
        self.assertEqual((kind, folder.stat().st_mode & 0o777, list(folder.parent.glob(".*"))), ("idx", 0o755, []))
        self.assertNotEqual(files.write_set(self.data), files.write_set(self.data, ["<lies>", "stands"]))
        self.assertNotEqual(files.write_set(self.data), files.write_set((*self.data[2:], *self.data[:2])))
        files._write_folder(folder, {"more": (b"",)})  # another process was faster
        self.assertEqual((len(list(folder.iterdir())), list(folder.parent.glob(".*"))), (4, []))
        Path("no-folder").touch()
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME="no-folder"):
            self.assertRaisesRegex(lockstep.IoError, "cannot be kept there: set XDG_CACHE_HOME", files.write_set, self.data)

    def test_channels_come_first_in_arrays_and_last_in_files(self):
        x = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
        folder = files.write_set((x, [0, 1], x, [1, 0]))[1]
        written = (folder / "train-images-idx4-ubyte").read_bytes()
        self.assertEqual(written[:20], bytes([0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 3]))
        self.assertEqual(written[20:], x.transpose(0, 2, 3, 1).tobytes())

    def test_several_labels_of_an_image_are_a_row_each(self):
        x, y = bars(4, 1)
        rows = np.stack([y % 2 == 0, y % 2 == 1, y >= 0], axis=1)
        kind, folder = lockstep.files.write_set((x, rows, x, rows))
        self.assertEqual(kind, "shards")
        written = np.frombuffer((folder / "train-labels.u32").read_bytes(), "<u4").tolist()
        self.assertEqual(written, [n for row in rows for n in (sum(row), *np.flatnonzero(row))])
        keys = dict(train__loss="binary_cross_entropy", train__epochs=1, parallel__device="cpu", quiet=True)
        run = lockstep.train({"model": "linear"}, data=(x, rows, x, rows), run__dir="several", **keys)
        self.assertEqual(run.config["data"]["set"], "shards")
        self.assertEqual(run.evaluate()["samples"], 4)

    def test_features_are_a_table(self):
        random = np.random.default_rng(1)
        x = random.normal(1000, 300, (200, 3)).astype(np.float32)
        y = (x[:, 0] > x[:, 1]).astype(np.int64)
        keys = dict(data__global_batch=20, parallel__grain=10, train__epochs=8, train__optimizer__lr=0.5, parallel__device="cpu", quiet=True)
        run = lockstep.train({"model": "linear"}, data=(x[:150], y[:150], x[150:], y[150:]), classes=["less", "more"], run__dir="features", **keys)
        self.assertEqual(run.config["data"]["set"], "table")
        self.assertEqual(run.classes, ["less", "more"])
        self.assertGreater(run.evaluate()["accuracy"], 0.8)
        self.assertAlmostEqual((run.predict(x[150:]) == y[150:]).mean(), run.evaluate()["accuracy"])
        np.savez("arrays.npz", x=x, y=y)
        subprocess.run([os.environ["LOCKSTEP_PROGRAM"], "convert", "arrays.npz", "converted", "--test-count", "1"], check=True, capture_output=True)
        self.assertEqual(run.evaluate(data="converted")["samples"], 2)


class Runs(InAFolder):
    """Runs on drawn digits: ranks, signals, errors."""

    def script(self, text, *launcher):
        Path("script.py").write_text("import os, sys, lockstep\n" + text)
        env = dict(os.environ, PYTHONPATH=str(PACKAGE / "src"))
        return subprocess.run([*launcher, sys.executable, "script.py"], env=env, capture_output=True, text=True, timeout=100)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_ranks_of_mpirun_come_to_the_weights_of_one(self):
        alone = lockstep.train("mnist", run__dir="alone", **SHORT)
        mine = self.script(f"""
short = {dict(SHORT, quiet=False)!r}
run = lockstep.train("mnist", **short)
print("rank", os.environ["OMPI_COMM_WORLD_RANK"], run, run.sha256, "correct:", run.evaluate()["correct"])
try:
    lockstep.train("mnist", **short)
except lockstep.UsageError as error:
    print(error)
from lockstep.program import open_mpi_of_launcher
print("libmpi of", open_mpi_of_launcher())
""", "mpirun", "--bind-to", "none", "--oversubscribe", "-np", "2")
        self.assertEqual(mine.returncode, 0, mine.stderr)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} Run('runs/mnist') {alone.sha256}", mine.stdout)
        self.assertEqual(mine.stdout.count("weights sha256"), 1)
        self.assertEqual(mine.stdout.count("can train once"), 2)
        self.assertNotIn("libmpi of None", mine.stdout)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_exit_code_of_a_stopped_run_is_that_of_rank_0(self):
        said = self.script(f"""
import signal
def stop(event):
    if event["event"] == "epoch":
        os.kill(os.getpid(), signal.SIGUSR1)
try:
    lockstep.train("mnist", run__dir="stopped", progress=stop, **{LONG!r})
except lockstep.Stopped as error:
    print("rank", os.environ["OMPI_COMM_WORLD_RANK"], "raises")
    sys.exit(error.code)
""", "mpirun", "--bind-to", "none", "--oversubscribe", "-np", "2")
        self.assertEqual((said.returncode, said.stdout), (75, "rank 0 raises\n"), said.stderr)

    def test_examples_run_on_a_few_digits(self):
        small = ["train.max_steps=4", "parallel.device=cpu", "run.checkpoint_every_steps=0", "run.report=false"]
        digits = ["data.set=synthetic", "data.train_samples=128", "data.test_samples=64", "data.mean=auto", "data.std=auto", *small]
        env = dict(os.environ, PYTHONPATH=str(PACKAGE / "src"))
        examples = (("data_parallel_tutorial", small, "the same bits: True"), ("lenet", digits, "the same curve: True"),
                    ("model_parallel", digits, "of the ranks' time"), ("ddp_mnist", digits, "trained by 1 ranks"),
                    ("hogwild_mnist", digits, "fc2.bias .* differs by at most"))
        started = [subprocess.Popen([sys.executable, PACKAGE / "examples" / f"{name}.py", *arguments], env=env, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for name, arguments, _ in examples]
        for (name, _, sentence), process in zip(examples, started):
            said = process.communicate()[0]
            with self.subTest(name):
                self.assertRegex(said, sentence)
                self.assertEqual(process.returncode, 0, said)

    def test_ctrl_c_saves_and_the_same_call_goes_on(self):
        def interrupt(event):
            if event["event"] == "epoch":
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            lockstep.train("mnist", run__dir="long", progress=interrupt, **LONG)
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(lockstep.Run("long").state, "interrupted")
        saved = lockstep.Run("long").events("epoch")
        events = []
        lockstep.train("mnist", run__dir="long", progress=events.append, **dict(LONG, train__epochs=len(saved) + 2))
        self.assertEqual([event for event in events if event["event"] == "epoch"][:len(saved)], saved)
        self.assertEqual(lockstep.Run("long").state, "finished")

    def test_progress_that_raises_stops_the_run_and_saves_it(self):
        def fail(event):
            raise RuntimeError("mine")

        with self.assertRaisesRegex(RuntimeError, "mine"):
            lockstep.train("mnist", run__dir="failed", progress=fail, **LONG)
        self.assertEqual(lockstep.Run("failed").state, "interrupted")

    def test_ctrl_c_that_cannot_save_has_the_reason(self):
        def interrupt(event):
            if event["event"] == "epoch" and os.path.exists("taken"):
                os.rename("taken", "elsewhere")
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt) as caught:
            lockstep.train("mnist", run__dir="taken", progress=interrupt, **LONG)
        # Missing: where the folder went in the middle of a save.
        self.assertIsInstance(caught.exception.__cause__, (lockstep.IoError, lockstep.MissingDataError))

    def test_progress_that_raises_hides_nothing_that_the_program_said(self):
        said = self.script(f"""
def fail(event):
    os.rename("moved", "away")
    raise RuntimeError("mine")
lockstep.train("mnist", run__dir="moved", progress=fail, **{dict(LONG, quiet=False)!r})
""")
        self.assertIn("RuntimeError: mine", said.stderr)
        self.assertRegex(said.stderr, "(?m)^lockstep: .*moved")

    def test_what_it_prints_goes_where_python_prints(self):
        said = self.script(f"""
import io
sys.stdout = io.StringIO()
run = lockstep.train("mnist", run__dir="heard", **{dict(SHORT, quiet=False)!r})
assert "weights sha256 " + run.sha256 in sys.stdout.getvalue()
""")
        self.assertEqual((said.returncode, said.stdout), (0, ""), said.stderr)

    def test_what_was_printed_before_comes_first(self):
        said = self.script(f"""
print("before")
lockstep.train("mnist", run__dir="order", **{dict(SHORT, quiet=False)!r})
""")
        self.assertRegex(said.stdout, "(?s)^before\n.*weights sha256 ")

    def test_the_run_of_a_killed_python_is_saved(self):
        Path("killed.py").write_text(f"import lockstep\nlockstep.train('mnist', run__dir='killed', **{dict(LONG, train__epochs=100_000)!r})\n")
        python = subprocess.Popen([sys.executable, "killed.py"], env=dict(os.environ, PYTHONPATH=str(PACKAGE / "src")))
        self.wait_for(lambda: os.path.exists("killed/metrics.jsonl") and lockstep.Run("killed").events("epoch"))
        python.kill()
        python.wait()
        self.wait_for(lambda: lockstep.Run("killed").state == "interrupted")

    def wait_for(self, happens):
        end = time.monotonic() + 60
        while not happens():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.05)

    def test_errors_carry_the_sentence_and_the_exit_code(self):
        for job, overrides, kind, code, sentence in (
                ("mnist", {"train__epoch": 3}, lockstep.UsageError, 2, "did you mean 'epochs'"),
                ("nosuch.yaml", {}, lockstep.MissingDataError, 66, "nosuch.yaml: no such file"),
                ("mnist", {"data": {"set": "idx", "root": "nowhere"}}, lockstep.MissingDataError, 66, "nowhere"),
                ("mnist", {"train__epochs": None}, lockstep.UsageError, 2, "None is not a value of a job"),
                ({"model": "net", "data": 1, "data.set": "mnist"}, {}, lockstep.UsageError, 2, "a value and a section"),
                ("mnist", dict(SHORT, train__optimizer__lr=1e6, run__dir="nan"), lockstep.InternalError, 70, "NaN or infinite")):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence) as caught:
                lockstep.train(job, **dict({"quiet": True}, **overrides))
            self.assertEqual(caught.exception.code, code)

    def test_questions_about_what_is_not_there_fail(self):
        for ask in (lambda run: run.sha256, lambda run: run.summary, lambda run: run.events(), lambda run: run.prove()):
            self.assertRaises(lockstep.MissingDataError, ask, lockstep.Run("nowhere"))

    def test_names_with_a_dash_are_no_options(self):
        Path("-job.yaml").write_text(json.dumps({"model": "linear"}))
        run = lockstep.train("-job.yaml", run__dir="-run", **dict(SHORT, quiet=True))
        for named in (run, lockstep.Run("-run")):
            self.assertEqual(named.sha256, run.sha256)
            self.assertEqual((named.state, named.verify()["good"], named.best.evaluate()["format"]), ("finished", True, 1))
            self.assertTrue(named.report("-page.html").is_file())
        self.assertEqual(len(lockstep.runs("-run")), 1)
        self.assertRaisesRegex(lockstep.UsageError, "--version is not a key", lockstep.train, "mnist", **{"--version": 1})

    def test_what_is_no_file_is_not_waited_for(self):
        os.mkdir("fifos")
        os.mkfifo("fifos/metrics.jsonl")
        self.assertRaisesRegex(lockstep.DataError, "metrics.jsonl: is not a regular file", lockstep.Run("fifos").events)


class Files(unittest.TestCase):
    """Arrays at the limits of their files; nothing is written."""

    def test_images_are_within_the_limits(self):
        self.assertEqual(files.as_images(np.zeros((1, 16384, 1), np.uint8), "x").shape, (1, 16384, 1))
        self.assertEqual(files.as_images(np.zeros((2, 1, 3, 4), np.uint8), "x").shape, (2, 3, 4))
        self.assertEqual(files.as_images(np.zeros((2, 4, 3, 1), np.uint8), "x").shape, (2, 3, 1, 4))
        self.assertEqual(files.as_images(np.zeros((2, 5, 3, 5), np.uint8), "x").shape, (2, 3, 5, 5))
        for last in (1, 4):
            self.assertRaisesRegex(lockstep.UsageError, "has its channels last", files.as_images, np.zeros((2, 5, 3, last), np.uint8), "x")
        for shape, sentence in (((1, 16385, 1), "of 1 to 16384 pixels a side"), ((1, 1, 16385), "of 1 to 16384 pixels a side"),
                                ((2, 0, 3), "there must be an image"), ((200_000, 110, 100), "x: 2200000000 bytes; a file of images holds 2147483647"),
                                ((1, 2, 3, 4, 5), "x: 5 dimensions; images are N x H x W")):
            with self.subTest(sentence), self.assertRaisesRegex(lockstep.UsageError, sentence):
                files.as_images(np.broadcast_to(np.uint8(0), shape), "x")

    def test_features_are_within_the_limits(self):
        self.assertEqual(files.as_features(np.ones((2, 3), np.float32), "x").shape, (2, 3, 1, 1))
        self.assertEqual(files.as_features(np.ones((2, 3, 4, 5), np.float32), "x").shape, (2, 3, 4, 5))
        for shape in ((2,), (0, 3), (1, 2**24 + 1), (1, 2, 2**12, 2**12)):
            with self.subTest(shape), self.assertRaisesRegex(lockstep.UsageError, "x: shape .*, at most 16777216 in a row"):
                files.as_features(np.broadcast_to(np.float32(0), shape), "x")

    def test_labels_are_within_the_limits(self):
        self.assertEqual(files.as_labels([0, 255], 2, "y").tolist(), [0, 255])
        self.assertEqual(files.as_labels([[0], [1]], 2, "y").tolist(), [[0], [1]])
        self.assertEqual(files.as_classes([999_999], 1, "y").tolist(), [999_999])
        for labels, take, most in (([256], files.as_labels, 255), ([1_000_000], files.as_classes, 999_999)):
            self.assertRaisesRegex(lockstep.UsageError, f"classes are numbered from 0 to {most} at most", take, labels, 1, "y")

    def test_arrays_that_make_no_set_are_refused_with_a_fix(self):
        x, y = bars(4, 1)
        three = np.stack([y % 2 == 0, y % 2 == 1, y >= 0], axis=1)
        f = np.random.default_rng(1).normal(1000, 300, (9, 3)).astype(np.float32)
        g, bad = np.arange(9) % 2, f.copy()
        bad[7, 1] = np.nan
        for data, classes, sentence in (
                ((x / 255, y, x, y), [], r"x: float64 images.*x\.astype\(numpy\.uint8\)"),
                ((x, y, x[:, :5], y), [], "x and x_test: images of"),
                ((x[0], y, x, y), [], "x: 2 dimensions"),
                ((x[:0], y[:0], x, y), [], "there must be an image"),
                ((x[..., None].repeat(3, 3), y, x, y), [], r"transpose\(0, 3, 1, 2\)"),
                ((x, y[:3], x, y), [], "y: int64 of shape .3,.; labels are 4 whole numbers"),
                ((x, y, x, y + 255), [], "y_test: labels from 255 to 256"),
                ((x, y / 2, x, y), [], "y: float64"),
                ((x, y), [], "give four"),
                ((x, three * 2, x, three), [], "y: a row for each image holds 1"),
                ((x, three, x, y), [], "they must be of one kind"),
                ((x, three, x, three[:, :2]), [], "they must be of one kind"),
                ((x, three[:3], x, three), [], "y: bool of shape"),
                ((x, three[:, :0], x, three[:, :0]), [], "y: bool of shape"),
                ((bad, g, f, g), [], "x: row 7 has NaN"),
                ((f, g, f[:, :2], g), [], "x and x_test: rows of"),
                ((f, g, f.astype(np.float64), g), [], r"x_test: float64; features.*astype\(numpy.float32\)"),
                ((f[:, :, None], g, f, g), [], "x: shape"),
                ((f, g - 1, f, g), [], "y: labels from -1"),
                ((f, g[:4], f, g), [], "y: int64 of shape"),
                ((x, y, x, y), ["one"], "classes: 1 of 2 names, and labels go up to 1"),
                ((x, y, x, y + 1), ["a", "b"], "classes: 2 of 3 names"),
                ((f, g, f, g + 1), ["a", "b"], "classes: 2 of 3 names"),
                ((x, y, x, y), ["a", " "], "' ' is not a name of one class"),
                ((x, y, x, y), ["a", 7], "7 is not a name of one class"),
                ((x, three, x, three), ["a", "b"], "2 of 3 names"),
                ((f, g, f, g), ["one"], "classes: 1 of 2 names"),
                ((x, three, x, three), ["a", "b", "c", "d"], "classes: 4 names, and rows of labels have 3"),
                ((x, y, x, y), ["a", "a"], "'a' is not a name of one class"),
                ((x, three, x, three), ["a", "b", "c\nd"], "is not a name of one class")):
            with self.subTest(sentence), self.assertRaisesRegex(lockstep.UsageError, sentence):
                files.write_set(data, classes)

    def test_header_of_idx_has_the_sizes(self):
        self.assertEqual(files.idx_head(np.zeros((2, 3, 260), np.uint8)), bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 1, 4]))

    def test_index_of_shards_has_sums_and_checksums(self):
        x = np.arange(2 * 6, dtype=np.uint8).reshape(2, 2, 3)
        made = files._label_set_files((x, np.array([[1, 1], [0, 1]]), x[:1], np.array([[0, 0]])), ["a", "b"])
        line, digest, _ = made["shards.index"][0].split(b"\n")
        self.assertEqual(hashlib.sha256(line).hexdigest().encode(), digest)
        head = json.loads(line)
        self.assertEqual([head[name] for name in ("lockstep_shards", "several_labels", "channels", "height", "width", "classes", "class_names",
                                                  "block_bytes", "shard_bytes")], [3, True, 1, 2, 3, 2, ["a", "b"], 262144, 2**30])
        blocks = hashlib.sha256(x.tobytes()).digest()
        self.assertEqual(made["train-blocks.sha256"], (blocks,))
        self.assertEqual(made["train-00000.shard"][0].tobytes(), x.tobytes())
        labels = np.array([2, 0, 1, 1, 1], "<u4").tobytes()
        self.assertEqual(head["train"], {"samples": 2, "labels_sha256": hashlib.sha256(labels).hexdigest(), "label_count": 3, "values": [66],
                                         "blocks_sha256": hashlib.sha256(blocks).hexdigest(), "squares": [sum(n * n for n in range(12))]})
        with unittest.mock.patch.multiple(files, _BLOCK=4, _SHARD=8):
            made = files._label_set_files((x, np.eye(2, dtype=int), x, np.eye(2, dtype=int)), [])
        self.assertEqual((made["train-00000.shard"][0].tobytes(), made["train-00001.shard"][0].tobytes()), (bytes(range(8)), bytes(range(8, 12))))
        self.assertEqual(made["train-blocks.sha256"], (b"".join(hashlib.sha256(bytes(range(at, at + 4))).digest() for at in (0, 4, 8)),))

    def test_shards_of_colour_have_a_sum_for_each_channel(self):
        x, rows = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2), np.eye(2, dtype=int)
        made = files._label_set_files((x, rows, x, rows), [])
        self.assertEqual(made["train-00000.shard"][0].tobytes(), x.tobytes())
        head = json.loads(made["shards.index"][0].split(b"\n")[0])
        self.assertEqual((head["channels"], head["train"]["values"], head["train"]["squares"]), (3, [60, 92, 124], [748, 1356, 2220]))

    def test_a_table_has_the_classes_of_its_labels_or_names(self):
        x, y = np.ones((2, 3), np.float32), [0, 1]
        for names, count in (([], 2), (["a", "b", "c"], 3)):
            head = json.loads(files._table_files((x, y, x, y), names)["shards.index"][0].split(b"\n")[0])
            self.assertEqual([head[name] for name in ("lockstep_shards", "sample", "channels", "height", "width", "classes")],
                             [2, "float32", 3, 1, 1, count])


class Program(unittest.TestCase):
    """Exit codes, words and places of the program."""

    def test_every_exit_code_has_its_error(self):
        for code, kind in ((2, lockstep.UsageError), (65, lockstep.DataError), (66, lockstep.MissingDataError), (69, lockstep.DeviceError),
                           (70, lockstep.InternalError), (71, lockstep.PeerLostError), (72, lockstep.WrongRankError), (74, lockstep.IoError),
                           (75, lockstep.Stopped), (5, lockstep.Error)):
            error = program.error_of(code, "")
            self.assertEqual((type(error), error.code, str(error)), (kind, code, f"the program ended with exit code {code}"))
        killed = program.error_of(-9, "")
        self.assertEqual((killed.code, str(killed)), (137, "the program was ended by signal 9"))
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

    def answer(self, text, code=0):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder, "fake")
            fake.write_text(f"#!/bin/sh\necho 'lockstep: why' >&2\nprintf %s '{text}'\nexit {code}\n")
            fake.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM=str(fake)):
                return program.answer_and_code(["ask"], (0, 1))

    def test_answers_are_objects_of_the_known_format(self):
        self.assertEqual(self.answer('{"format": 1, "a": 2}', 1), ({"format": 1, "a": 2}, 1))
        for text in ("[]", "{", "word"):
            self.assertRaisesRegex(lockstep.InternalError, "lockstep ask --json did not answer with an object", self.answer, text)
        self.assertRaisesRegex(lockstep.UsageError, "lockstep ask answers in format 3, this package reads 1", self.answer, '{"format": 3}')
        self.assertRaisesRegex(lockstep.InternalError, "an object: 'x{200}'$", self.answer, 300 * "x")
        self.assertRaisesRegex(lockstep.DeviceError, "^why$", self.answer, '{"format": 1}', 69)
        self.assertRaisesRegex(lockstep.Error, "^why$", self.answer, "", 1)

    def test_a_program_that_is_not_there_is_told(self):
        with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM="/nowhere/lockstep"):
            self.assertRaisesRegex(lockstep.DeviceError, "no program /nowhere/lockstep: install the wheel", program.program)

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

    def test_columns_and_names_of_classes(self):
        for values, kind, wanted in (([1, 2], np.int64, [1, 2]), ([1, None, True], np.float64, [1, np.nan, np.nan]), ([0.5, 2], np.float64, [0.5, 2])):
            column = lockstep.run._column(values)
            np.testing.assert_array_equal(column, wanted)
            self.assertEqual(column.dtype, kind)
        self.assertFalse(lockstep.run._is_number(True))
        self.assertEqual(lockstep.run._class_names({"model": {"classes": "3"}}), ["0", "1", "2"])
        self.assertEqual(lockstep.run._class_names({"data": {"class_names": "a\nb"}}), ["a", "b"])

    def test_a_run_is_named_with_its_checkpoint(self):
        run = lockstep.Run("runs/a")
        self.assertEqual([(str(one.path), one.checkpoint) for one in (run, run.best, run.at(epoch=3), run.at(step=500), run.at("last"))],
                         [("runs/a", "last"), ("runs/a", "best"), ("runs/a", "epoch:3"), ("runs/a", "step:500"), ("runs/a", "last")])
        self.assertEqual((repr(run.best), run.best.name, lockstep.Run("@x").checkpoint), ("Run('runs/a@best')", "runs/a@best", "last"))
        self.assertEqual(run, lockstep.Run("runs/../runs/a"))
        self.assertEqual(hash(run), hash(lockstep.Run("runs/../runs/a")))
        self.assertNotEqual(run, run.best)
        self.assertNotEqual(run, "runs/a")


class Overrides(unittest.TestCase):
    def test_spellings_of_a_key(self):
        wanted = {"train.optimizer.lr": 0.1}
        for given in ({"train__optimizer__lr": 0.1}, {"train.optimizer.lr": 0.1}, {"train": {"optimizer": {"lr": 0.1}}},
                      {"train": {"optimizer.lr": 0.1}}):
            self.assertEqual(training.flat_keys(given), wanted)

    def test_what_is_no_key_or_no_value_is_told(self):
        self.assertRaisesRegex(lockstep.UsageError, r"^a\.1 is not a key: keys of a job are text$", training.flat_keys, {"a": {1: 2}})
        self.assertRaisesRegex(lockstep.UsageError, r"^a\.-b is not a key, and options", training.flat_keys, {"a": {"-b": 2}})
        self.assertRaisesRegex(lockstep.UsageError, "is not a value of a job: give a number", training.override_text, {1})

    def test_dicts_become_job_files_and_names_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = training._job_file({"model": Path("a/b"), "train.optimizer.lr": 0.5, "train": {"epochs": 3}}, Path(folder))
            self.assertEqual(json.loads(path.read_text()), {"model": "a/b", "train": {"optimizer": {"lr": 0.5}, "epochs": 3}})
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
            for text, wanted in (('{"a": 1}\n{"b"', [{"a": 1}]), (': 2}\n', [{"a": 1}, {"b": 2}]), ('damaged\n[3]\n{"c": 4}\n', [{"a": 1}, {"b": 2}, {"c": 4}])):
                with open(metrics, "a", encoding="utf-8") as file:
                    file.write(text)
                reader.hand_on()
                self.assertEqual(events, wanted)
            reader.close()

    def trained(self, script, quiet=False):
        """Run a program that is this script: the directory or the error that it leaves, and what Python printed."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()) as err, unittest.mock.patch.object(training.time, "monotonic", lambda: 0.0):
            try:
                result = training._Training(["/bin/sh", "-c", script], Path(folder) / "run", None, quiet).finish()
            except lockstep.Error as error:
                result = error
        return result, out.getvalue(), err.getvalue()

    def test_what_the_program_says_is_printed_but_for_the_error(self):
        end = "; echo a >&2; echo b >&2; echo out; echo there >$LOCKSTEP_RUN_FILE"
        self.assertEqual(self.trained("true" + end), (Path("there"), "out\n", "a\nb\n"))
        self.assertEqual(self.trained("true" + end, quiet=True), (Path("there"), "", ""))
        error, _, said = self.trained("echo note >&2; echo lockstep: why >&2; exit 65")
        self.assertEqual((type(error), str(error), said), (lockstep.DataError, "why", "note\n"))
        stopped, _, said = self.trained("echo saved >&2; exit 75")
        self.assertEqual((type(stopped), str(stopped), said), (lockstep.Stopped, "saved on request: the same call goes on", "saved\n"))
        self.assertRegex(str(self.trained("true")[0]), "/bin/sh is older than this package")

    def test_any_thread_may_train(self):
        results = []
        thread = threading.Thread(target=lambda: results.append(self.trained("echo there >$LOCKSTEP_RUN_FILE")[0]))
        thread.start()
        thread.join()
        self.assertEqual(results, [Path("there")])

    def test_values_as_the_command_line_has_them(self):
        for value, text in ((3, "3"), (0.5, "0.5"), (True, "true"), ("adam", "adam"), ([0.9, 0.99], "[0.9, 0.99]"),
                            (Path("a/b"), "a/b"), (np.float64(0.25), "0.25"), (np.array([1, 2]), "[1, 2]")):
            self.assertEqual(training.override_text(value), text)


class Safetensors(unittest.TestCase):
    def read(self, header, body=b""):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with tempfile.NamedTemporaryFile() as file:
            file.write(len(text).to_bytes(8, "little") + text + body)
            file.flush()
            return files.read_safetensors(Path(file.name))

    def test_tensors_come_in_their_order(self):
        tensors = self.read({"b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "__metadata__": {"format": "pt"},
                             "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, np.float32([1, 2, 3]).tobytes())
        self.assertEqual({name: array.tolist() for name, array in tensors.items()}, {"a": 1, "b": [2, 3]})
        self.assertEqual(list(tensors), ["a", "b"])
        self.assertEqual(self.read({}), {})
        self.assertEqual(self.read({"none": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]}}, bytes(4))["none"].tolist(), [])

    def test_what_is_none_is_refused(self):
        for header in (b"{", b"[]", {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
                       {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, {"a": {"dtype": "C64", "shape": [], "data_offsets": [0, 4]}},
                       {"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, {"a": 1}):
            with self.subTest(header):
                self.assertRaises(lockstep.DataError, self.read, header, bytes(4))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\xff" * 64)
            file.flush()
            self.assertRaises(lockstep.DataError, files.read_safetensors, Path(file.name))
            file.seek(0)
            file.write((100_000_001).to_bytes(8, "little"))
            file.truncate(100_000_009)
            self.assertRaisesRegex(lockstep.DataError, "its header is longer than the file", files.read_safetensors, Path(file.name))


@unittest.skipUnless(sys.version_info >= (3, 11) and shutil.which("readelf"), "Python 3.11 and readelf build it")
class Wheel(InAFolder):
    """A wheel of a bundle of a few files."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, source in (("libexec/lockstep", shutil.which("true")), ("libexec/lockstep_nccl.so", shutil.which("true")), ("lib/libmpi.so.40", None), ("lib/libz.so.1", None),
                             ("tests/gpu/run", None), ("share/lockstep/jobs/mnist.yaml", None), ("LICENSE", None), ("VERSION", None)):
            path = Path("bundle", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if source:
                shutil.copy(source, path)
            else:
                path.write_text("lockstep 1.2.3\n")
        for folder in ("one", "two"):
            os.mkdir(folder)
            said = subprocess.run([sys.executable, PACKAGE / "wheel_backend.py", "bundle", folder], capture_output=True, text=True, check=True)
        cls.name = said.stdout.strip()
        cls.wheel = zipfile.ZipFile(Path("one", cls.name))

    def test_name_says_what_it_needs(self):
        self.assertRegex(self.name, r"^lockstep-1\.2\.3-py3-none-manylinux_2_\d+_[a-z0-9_]+\.whl$")

    def test_without_arguments_it_says_what_it_takes(self):
        done = subprocess.run([sys.executable, PACKAGE / "wheel_backend.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("Builds the wheel: wheel_backend.py BUNDLE DIRECTORY"), done.stderr)

    def test_tag_is_of_the_newest_symbol_of_any_library(self):
        sys.path.insert(0, str(PACKAGE))
        import wheel_backend
        said = {"a": "Name: GLIBC_2.9  Flags\n Name: GLIBC_2.17 ", "b": "Name: GLIBC_2.4 ", "text": "Name: GLIBC_2.99 "}
        for name in said:
            Path(name).write_bytes(b"text" if name == "text" else b"\x7fELF and more")
        with unittest.mock.patch.object(wheel_backend, "readelf", lambda option, file: said[file.name]):
            tag = wheel_backend.platform_tag([Path(name) for name in said])
        self.assertEqual(tag, "manylinux_2_17_" + os.uname().machine)

    def test_same_files_give_the_same_bytes(self):
        self.assertEqual(Path("one", self.name).read_bytes(), Path("two", self.name).read_bytes())

    def test_record_has_every_file(self):
        rows = {path: (digest, size) for path, digest, size in csv.reader(self.wheel.read("lockstep-1.2.3.dist-info/RECORD").decode().splitlines())}
        self.assertEqual(set(rows), set(self.wheel.namelist()))
        for path in self.wheel.namelist():
            data = self.wheel.read(path)
            wanted = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            self.assertIn(rows[path], ((wanted, str(len(data))), ("", "")), path)

    def test_it_says_what_it_is(self):
        licence, about, wheel = (self.wheel.read("lockstep-1.2.3.dist-info/" + name).decode() for name in ("licenses/LICENSE", "METADATA", "WHEEL"))
        self.assertEqual(licence, "lockstep 1.2.3\n")
        self.assertTrue(about.startswith("Metadata-Version: 2.1\nName: lockstep\nVersion: 1.2.3\nSummary: "), about)
        for line in ("License: MIT", "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.21", "Classifier: Typing :: Typed"):
            self.assertIn(line, about.splitlines())
        tag = self.name[len("lockstep-1.2.3-"):-len(".whl")]
        self.assertEqual(wheel, f"Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: false\nTag: {tag}\n")

    def test_program_can_be_run_and_open_mpi_stands_apart(self):
        names = self.wheel.namelist()
        for name, mode in (("lockstep/_bundle/libexec/lockstep", 0o100755), ("lockstep/run.py", 0o100644), ("lockstep-1.2.3.dist-info/WHEEL", 0o100644)):
            entry = self.wheel.getinfo(name)
            self.assertEqual((entry.external_attr >> 16, entry.date_time), (mode, (1980, 1, 1, 0, 0, 0)))
        for name in ("lockstep/_bundle/mpi/libmpi.so.40", "lockstep/_bundle/libexec/lockstep_nccl.so", "lockstep/_bundle/share/lockstep/jobs/mnist.yaml", "lockstep/py.typed", "lockstep/run.py"):
            self.assertIn(name, names)
        for name in ("lib/libz.so.1", "tests/gpu/run", "VERSION"):
            self.assertNotIn("lockstep/_bundle/" + name, names)

    def test_command_becomes_the_program(self):
        self.wheel.extractall("site")
        command = Path("site/lockstep-1.2.3.data/scripts/lockstep")
        os.chmod("site/lockstep/_bundle/libexec/lockstep", 0o755)
        env = {name: value for name, value in os.environ.items() if name != "LOCKSTEP_PROGRAM"}
        done = subprocess.run([sys.executable, command, "--version"], env=dict(env, PYTHONPATH="site"), capture_output=True, text=True)
        self.assertEqual((done.returncode, "lockstep" in done.stdout or "true" in done.stdout), (0, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
