#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""A run of the Python package on arrays, and what can be asked of it."""
import hashlib
import os
import shutil
import subprocess
import unittest
import unittest.mock
from pathlib import Path

from python_package import InAFolder, SHORT, bars, np

import lockstep
from lockstep import files, program


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
        for folder in ("runs/nothing", "runs"):
            self.assertRaisesRegex(lockstep.MissingDataError, "there is no run in this folder", lambda: lockstep.Run(folder).summary)

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

    def test_a_share_in_html_is_whole_or_nothing_only_where_it_is(self):
        shares = {None: None, 0: "0.00 %", 1e-9: "0.01 %", 0.5: "50.00 %", 0.99996: "99.99 %", 1: "100.00 %"}
        self.assertEqual({share: lockstep.run._percent(share) for share in shares}, shares)

    def test_same_arrays_are_written_once(self):
        self.assertEqual(files.write_set(self.data, ["<lies>", "stands"]), files.write_set(self.data, ["<lies>", "stands"]))
        kind, folder = files.write_set(self.data)
        self.assertEqual((kind, len(list(folder.iterdir())), list(folder.parent.glob(".*"))), ("idx", 4, []))
        self.assertNotEqual(files.write_set(self.data), files.write_set(self.data, ["<lies>", "stands"]))
        self.assertNotEqual(files.write_set(self.data), files.write_set((*self.data[2:], *self.data[:2])))
        Path("no-folder").touch()
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=os.path.abspath("no-folder")):
            self.assertRaisesRegex(lockstep.IoError, "cannot be kept there: set XDG_CACHE_HOME", files.write_set, self.data)
        for ignored in ("relative", ""):
            with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=ignored, HOME=self.folder):
                self.assertEqual(files.write_set(self.data)[1], Path(self.folder, ".cache/lockstep/arrays", folder.name))
        self.assertFalse(os.path.exists("relative"))

    def test_files_that_are_gone_or_cut_off_are_written_again(self):
        folder, bytes_of = files.write_set(self.data, ["c", "d"])[1], lambda: {file.name: file.read_bytes() for file in folder.iterdir()}
        whole, names = bytes_of(), folder / "classes.txt"
        left = names.stat().st_ino
        (folder / "train-images-idx3-ubyte").unlink()
        (folder / "t10k-labels-idx1-ubyte").write_bytes(b"")
        self.assertEqual((files.write_set(self.data, ["c", "d"])[1], bytes_of(), names.stat().st_ino), (folder, whole, left))
        names.unlink()
        names.mkdir()
        self.assertRaisesRegex(lockstep.IoError, "cannot be kept there: set XDG_CACHE_HOME", files.write_set, self.data, ["c", "d"])
        self.assertEqual(list(folder.parent.glob(".*")), [])

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


if __name__ == "__main__":
    unittest.main()
