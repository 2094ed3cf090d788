# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Runs: what they came to, their weights, and what can be asked of them."""
from __future__ import annotations

import html
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import numpy as np

from .files import Array, as_features, as_images, events_in, idx_head, is_features, open_file, read_safetensors
from .program import MissingDataError, Refuted, UsageError, answer_and_code, argument, ask, call, error_of

Directory = Union[str, "os.PathLike[str]"]

_AT_ONCE = 1000  # pictures in a question to the program


def runs(dir: Directory = "runs") -> List[Run]:
    """The runs below a folder, as `lockstep runs` lists them."""
    listed = ask("runs", argument(dir))["runs"]
    return [Run(summary["run"]) for summary in listed if summary["state"] != "no run"]


class Run:
    """A run directory, or one of its checkpoints: `Run("runs/mnist")`, `Run("runs/mnist@best")`.

    Nothing is kept: each question reads the files as they are, also of a run that trains meanwhile.
    """

    def __init__(self, dir: Directory) -> None:
        self.name = argument(dir)  #: as the program's commands take it
        folder, _, checkpoint = self.name.rpartition("@")
        if checkpoint in ("ema", "swa") and "@" in folder and not Path(folder).exists():  # RUN@best@ema
            folder, _, averaged = folder.rpartition("@")
            checkpoint = f"{averaged}@{checkpoint}"
        named = folder != "" and not Path(self.name).exists()
        self.path = Path(folder if named else self.name)  #: the run directory
        self.checkpoint = checkpoint if named else "last"  #: "last", "best", "epoch:3", "step:500", "ema" or "best@ema"

    def at(self, checkpoint: str = "last", *, epoch: Optional[int] = None, step: Optional[int] = None) -> Run:
        """The run at another of its checkpoints: `run.at("best")`, `run.at(epoch=3)`, `run.at(step=500)`."""
        if epoch is not None or step is not None:
            checkpoint = f"epoch:{epoch}" if epoch is not None else f"step:{step}"
        return Run(f"{self.path}@{checkpoint}")

    @property
    def best(self) -> Run:
        """The run at the checkpoint of its highest accuracy, on held-out samples where it has some."""
        return self.at("best")

    # Results of the run.

    @property
    def summary(self) -> Dict[str, Any]:
        """The run in `lockstep runs --json`: state, epochs, accuracy, seconds, ranks and more."""
        if not self.path.is_dir():
            raise MissingDataError(f"{self.path}: there is no such run")
        listed = ask("runs", argument(self.path))["runs"]
        found = [run for run in listed if Path(run["run"]).resolve() == self.path.resolve()]
        if not found or found[0]["state"] == "no run":
            raise MissingDataError(f"{self.path}: there is no run in this folder")
        return dict(found[0])

    @property
    def state(self) -> str:
        """running, finished, interrupted, failed, lost or damaged."""
        return str(self.summary["state"])

    @property
    def config(self) -> Dict[str, Any]:
        """The whole job, as nested dicts of numbers, texts and lists."""
        return dict(self.summary["config"] or {})

    def events(self, kind: Optional[str] = None) -> List[Dict[str, Any]]:
        """The lines of `metrics.jsonl`; with `kind` ("start", "step", "epoch", "end" ...) those of that event."""
        try:
            with open_file(self.path / "metrics.jsonl") as file:
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            raise MissingDataError(f"{self.path}: there is no metrics.jsonl: no run has begun there") from None
        return [event for event in events_in(lines) if kind in (None, event.get("event"))]

    def columns(self, kind: str) -> Dict[str, Array]:
        """The numbers of all events of a kind, a column each; NaN where an event has none."""
        events = self.events(kind)
        names = dict.fromkeys(name for event in events for name, value in event.items() if _is_number(value))
        return {name: _column([event.get(name) for event in events]) for name in names}

    @property
    def metrics(self) -> Dict[str, Array]:
        """A column for each number of the epochs: epoch, train_loss, test_loss, test_accuracy and more."""
        return self.columns("epoch")

    # Its weights, and what they compute.

    @property
    def weights(self) -> Dict[str, Array]:
        """The parameters of the checkpoint by name, in the shapes that a PyTorch state_dict has; at "ema" their average."""
        inspected = ask("inspect", self.name)
        average = inspected["average"]
        folder = Path(inspected["checkpoint"][:-len(f"@{average}")] if average else inspected["checkpoint"])
        tensors = read_safetensors(folder / "model.safetensors")
        averaged = read_safetensors(folder / "optimizer.safetensors") if average else {}
        return {name: averaged.get(f"{average}.{name}", array) for name, array in tensors.items()}

    @property
    def sha256(self) -> str:
        """The SHA-256 of the weights, as training prints it last."""
        return str(ask("hash", self.name)["weights_sha256"])

    @property
    def is_published(self) -> Optional[bool]:
        """True if the weights are the published ones; None where none are published for this job."""
        same: Optional[bool] = ask("hash", self.name)["published_hash"]
        return same

    @property
    def classes(self) -> List[str]:
        """The names of the classes, in the order of their labels."""
        return _class_names(ask("inspect", self.name))

    def probabilities(self, images: Any) -> Array:
        """The probability of each class, N x classes: the softmax, or of `train.loss: binary_cross_entropy` the
        sigmoid of each class by itself. A run with `train.loss: mse` has none: see `scores`.

        Args:
            images: numpy.uint8, N x H x W or N x C x H x W, in the form of the training images; of a network that was
                trained on features, numpy.float32, N x F or N x C x H x W.
        """
        if ask("inspect", self.name)["job"].get("train.loss") == "mse":
            raise ValueError(f"{self.name}: a network that was trained with train.loss: mse gives no probabilities; "
                             "scores() has its outputs, near 1 for the class and near 0 for the others")
        return self.scores(images)

    def scores(self, images: Any) -> Array:
        """Scores of the network, N x classes: `probabilities`, or with `train.loss: mse` its outputs.

        Args:
            images: as `probabilities` takes them.
        """
        is_table = is_features(images)
        array = as_features(images, "images") if is_table else as_images(images, "images")
        inspected = ask("inspect", self.name)
        trained_on = tuple(int(inspected["model"][side]) for side in ("height", "width"))
        if not is_table and array.shape[1:3] != trained_on:
            raise UsageError("images: {} x {} pixels, height first; {} was trained on {} x {}: bring them to that size".format(
                *array.shape[1:3], self.name, *trained_on))
        names = {name: column for column, name in enumerate(_class_names(inspected))}
        result = np.zeros((len(array), len(names)), np.float32)
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            for first in range(0, len(array), _AT_ONCE):
                some = array[first:first + _AT_ONCE]
                path = Path(folder) / ("rows.npy" if is_table else f"images-idx{array.ndim}-ubyte")
                if is_table:
                    np.save(path, some)
                else:
                    path.write_bytes(idx_head(some) + some.tobytes())
                answers = call("predict", self.name, str(path), "--json", "--top", str(len(names)))
                for row, line in enumerate(answers.splitlines(), first):
                    for answer in json.loads(line)["top"]:
                        result[row, names[answer["class"]]] = answer.get("probability", answer.get("output"))
        return result

    def predict(self, images: Any) -> Array:
        """The likeliest class of each image, as its label. Takes what `probabilities` takes."""
        labels: Array = self.scores(images).argmax(axis=1)
        return labels

    def evaluate(self, *, train: bool = False, validation: bool = False, data: Optional[Directory] = None,
                 classes: bool = False) -> Dict[str, Any]:
        """Loss and accuracy on the data of the run: what `lockstep eval --json` says.

        Args:
            train: on the training half in place of the test half.
            validation: on the samples that the run held out of it.
            data: a folder with other data of the same form.
            classes: also precision and recall of each class.
        """
        options = ["--train"] * train + ["--validation"] * validation + ["--classes"] * classes
        options += (["--data", argument(data)] if data is not None else [])
        return ask("eval", self.name, *options)

    def prove(self, *, sample: Optional[int] = None, ranks: Optional[int] = None) -> Dict[str, Any]:
        """Computes the steps of the run again and compares them.

        Args:
            sample: only so many steps, at random.
            ranks: as threads.

        Raises:
            Refuted: the run was computed otherwise than it says.
            Error: some steps could not be computed again.
        """
        options = ["--sample", str(sample)] if sample is not None else []
        options += ["--ranks", str(ranks)] if ranks is not None else []
        answer, code = answer_and_code(["prove", argument(self.path), *options], allowed=(0, 1, 66, 69))
        for found in answer["refuted"]:
            raise Refuted(f"{self.path}: refuted at step {found['step']}: {found['text']}; likely cause: {found['cause']}")
        for left in answer["not_proved"] if code != 0 else ():
            raise error_of(code, f"{self.path}: steps {left['from']} to {left['to']} are not proved: {left['why']}")
        return answer

    def verify(self) -> Dict[str, Any]:
        """Result of `lockstep verify --json`; `good` is True if every checksum of every checkpoint holds."""
        return answer_and_code(["verify", self.name], allowed=(0, 65))[0]

    def report(self, output: Optional[Directory] = None) -> Path:
        """Writes the run as a page of curves, classes and mistakes; returns its path, `report.html` in the run unless told."""
        path = Path(output) if output is not None else self.path / "report.html"
        call("report", argument(self.path), *(["-o", argument(path), "--force"] if output is not None else []))
        return path

    # As it is shown.

    def __repr__(self) -> str:
        return f"Run({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and (self.path.resolve(), self.checkpoint) == (other.path.resolve(), other.checkpoint)

    def __hash__(self) -> int:
        return hash((self.path.resolve(), self.checkpoint))

    def _repr_html_(self) -> str:
        """For notebooks: a table, and the curves in characters, in which nothing can run."""
        summary = self.summary
        shown = {"state": summary["state"], "model": summary["model"], "data": summary["data"],
                 "epochs": f"{summary['epochs']} of {summary['epochs_asked']}", "ranks": summary["ranks"],
                 "test accuracy": _percent(summary["test_accuracy"]),
                 "best" if summary["validation_accuracy"] is None else "best validation": _percent(
                     (summary["best_accuracy"] or {}).get("value")),
                 "weights": summary["weights_sha256"]}
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
                       for name, value in shown.items() if value not in (None, ""))
        curves = call("report", argument(self.path), "--format", "terminal").split("\n", 1)[1]
        return (f"<table><caption>{html.escape(self.name)}</caption>{rows}</table>"
                f"<pre>{html.escape(curves)}</pre>")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _column(values: List[Any]) -> Array:
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return np.array(values, np.int64 if max(values, default=0) < 2**63 else np.uint64)  # train.seed has 64 bits
    return np.array([value if _is_number(value) else np.nan for value in values], np.float64)


def _percent(share: Optional[float]) -> Optional[str]:
    """Less than 1 is at most 99.99, and more than 0 at least 0.01."""
    if share is None:
        return None
    most = min(100 * share, 99.99) if share < 1 else 100 * share
    return f"{max(most, 0.01) if share > 0 else most:.2f} %"


def _class_names(inspected: Dict[str, Any]) -> List[str]:
    named = inspected.get("data", {}).get("class_names", "")
    if named:
        return [str(name) for name in named.splitlines()]
    return [str(number) for number in range(int(inspected["model"]["classes"]))]
