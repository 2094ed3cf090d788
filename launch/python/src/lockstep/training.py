# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Training: a job and its overrides become a command line, the program runs, its events are handed on."""
from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .files import events_in, open_file, write_set
from .program import Stopped, UsageError, argument, environment, error_of, launched_rank, launched_size, program, shared_folder
from .run import Run

Job = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Progress = Callable[[Dict[str, Any]], object]

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def train(job: Job, *, data: Optional[Any] = None, classes: Optional[Sequence[str]] = None, ranks: Optional[int] = None,
          progress: Optional[Progress] = None, quiet: bool = False, **overrides: Any) -> Run:
    """Trains a network as a job says, and returns the run.

    The same call again goes on with a run that was interrupted. Under `mpirun -np 2 python SCRIPT` the processes are the
    ranks of one run, of which rank 0 prints and reports progress.

    Args:
        job: the path of a job file, the name of a job that comes with the program ("mnist"), or a dict of its keys.
        data: four arrays (x, y, x_test, y_test): images as numpy.uint8, N x H x W or N x C x H x W, labels as whole numbers,
            or, for `train.loss=binary_cross_entropy`, as N x classes of zeros and ones. Features that are no pixels are
            numpy.float32, N x F or N x C x H x W.
            A dict is the section `data` of the job.
        classes: the names of the classes of those arrays.
        ranks: so many threads of one process as ranks, without mpirun.
        progress: called with each event of `metrics.jsonl` as a dict, those of earlier starts of the run first. What it
            raises stops the run, which is saved.
        quiet: print nothing.
        overrides: keys of the job, as `train__epochs=3`, `train={"epochs": 3}` or `**{"train.epochs": 3}`.

    Raises:
        KeyboardInterrupt: after Ctrl-C; the run is saved, or the Error in `__cause__` says why not.
        Stopped: the run was told to stop by another signal, and is saved.
        Error: what the program says. Where mpirun started several ranks, rank 0 has it, and the others end with SystemExit.
    """
    keys = flat_keys(overrides)
    if classes is not None and (data is None or isinstance(data, Mapping)):
        raise UsageError("classes: names the classes of arrays, and there are none: give data=(x, y, x_test, y_test)")
    if isinstance(data, Mapping):
        keys.update(flat_keys({"data": data}))
    elif data is not None:
        kind, folder_of_data = write_set(data, classes)
        keys.update({"data.set": kind, "data.root": str(folder_of_data)})
    if ranks is not None:
        keys.update({"parallel.backend": "thread", "parallel.ranks": ranks})
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        command = [str(program()), "train", argument(_job_file(job, Path(folder)))]
        command += [f"{key}={override_text(value)}" for key, value in keys.items()]
        _refuse_second_launch()
        return Run(_Training(command, Path(folder) / "run", progress, quiet).finish())


_has_been_a_rank = False


def _refuse_second_launch() -> None:
    """An mpirun takes each of its processes once, and the ranks of a second training would wait for ever."""
    global _has_been_a_rank
    if launched_size() > 1 and _has_been_a_rank:
        raise UsageError("a process that mpirun or srun started can train once: start the second training by an mpirun of its own")
    _has_been_a_rank = True


# Jobs and overrides as the command line has them.


def flat_keys(values: Mapping[str, Any], prefix: str = "") -> Dict[str, Any]:
    """{"train": {"epochs": 3}} and {"train__epochs": 3} as {"train.epochs": 3}."""
    flat: Dict[str, Any] = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise UsageError(f"{prefix}{key!r} is not a key: keys of a job are text")
        if key.startswith("-"):
            raise UsageError(f"{prefix}{key} is not a key, and options of the program are not given here")
        name = prefix + key.replace("__", ".")
        if isinstance(value, Mapping):
            flat.update(flat_keys(value, name + "."))
        else:
            flat[name] = value
    return flat


def override_text(value: Any) -> str:
    """A value as it stands behind KEY=. A text is taken as the command line takes it."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if not isinstance(value, (bool, int, float, list, tuple)):
        value = _plain(value)
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, and paths, as JSON has them, also within lists and dicts."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise UsageError(f"{value!r} is not a value of a job: give a number, a text, True or False, or a list of those")


def _job_file(job: Job, folder: Path) -> Path:
    if isinstance(job, Mapping):
        nested: Dict[str, Any] = {}
        for key, value in flat_keys(job).items():
            *sections, last = key.split(".")
            section = nested
            for name in sections:
                section = section.setdefault(name, {})
                if not isinstance(section, dict):
                    raise UsageError(f"{key}: {name} is a value and a section at once")
            section[last] = value
        path = folder / "job.yaml"
        # JSON is YAML, but for characters that are escaped as two halves.
        path.write_text(json.dumps(nested, ensure_ascii=False, default=_plain), encoding="utf-8", errors="surrogatepass")
        return path
    path = Path(job)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    shipped = shared_folder("jobs")
    if not (shipped / f"{path}.yaml").is_file():
        names = ", ".join(sorted(file.stem for file in shipped.glob("*.yaml")))
        raise UsageError(f"there is no job '{path}': give the path of a job file, a dict, or one of {names}")
    return shipped / f"{path}.yaml"


class _Events:
    """Reads metrics.jsonl as it grows."""

    def __init__(self, run_file: Path, progress: Optional[Progress]) -> None:
        self._run_file, self._progress = run_file, progress
        self._file: Optional[IO[bytes]] = None
        self._rest = b""

    def hand_on(self) -> None:
        if self._progress is None:
            return
        file = self._open()
        if file is None:
            return
        lines = (self._rest + file.read()).split(b"\n")
        self._rest = lines.pop()
        for event in events_in(lines):
            self._progress(event)

    def _open(self) -> Optional[IO[bytes]]:
        if self._file is None and self._run_file.exists():
            metrics = _directory_in(self._run_file) / "metrics.jsonl"
            if metrics.exists():
                self._file = open_file(metrics)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _directory_in(run_file: Path) -> Path:
    return Path(run_file.read_text(encoding="utf-8", errors="surrogateescape")[:-1])


class _Training:
    """The program while it trains."""

    def __init__(self, command: List[str], run_file: Path, progress: Optional[Progress], quiet: bool) -> None:
        self._run_file, self._quiet = run_file, quiet
        self._events = _Events(run_file, progress if launched_rank() == 0 else None)
        self._caught: List[int] = []
        self._held: List[Tuple[float, str]] = []  # lines of standard error: one of them may become an exception
        self._said = ""
        self._command = command

    def finish(self) -> Path:
        """Trains. Returns the run directory."""
        with _catching(self._pass_on):
            self._start()
            readers = self._start_readers()
            failed = False
            try:
                code = self._wait()
                failed = code not in (0, Stopped.code)
            finally:
                for reader in readers:
                    reader.join()
                self._events.close()
                if failed and self._held:
                    own = [at for at, (_, line) in enumerate(self._held) if line.startswith("lockstep: ") and code > 0]
                    self._held.pop(own[-1] if own else -1)  # becomes an exception
                self._print_held(0)
        error = error_of(code, self._said) if failed else None
        if signal.SIGINT in self._caught:
            raise KeyboardInterrupt from error
        if code != 0:
            raise error or Stopped("saved on request: the same call goes on")
        return self._finished_directory()

    def _start(self) -> None:
        env = dict(environment(), LOCKSTEP_RUN_FILE=str(self._run_file))
        # Below mpirun standard output looks like a terminal where it is a file.
        to_terminal = sys.stdout is sys.__stdout__ and not self._quiet and "OMPI_COMM_WORLD_SIZE" not in os.environ
        out = subprocess.DEVNULL if self._quiet else None if to_terminal else subprocess.PIPE
        if sys.stdout is not None:
            sys.stdout.flush()
        self._process = subprocess.Popen(self._command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                         encoding="utf-8", errors="replace", preexec_fn=_end_with_python)
        for number in self._caught:
            self._process.send_signal(number)  # it came in between

    def _start_readers(self) -> List[threading.Thread]:
        tasks = [(self._process.stderr, self._hold)]
        if self._process.stdout is not None:
            tasks.append((self._process.stdout, lambda line: print(line, end="", flush=True)))
        readers = [threading.Thread(target=_read_lines, args=task, daemon=True) for task in tasks]
        for reader in readers:
            reader.start()
        return readers

    def _hold(self, line: str) -> None:
        self._said = (self._said + line)[-100_000:]
        self._held.append((time.monotonic(), line))

    def _print_held(self, seconds: float) -> None:
        """Those lines of standard error that are older."""
        while self._held and time.monotonic() - self._held[0][0] >= seconds:
            line = self._held.pop(0)[1]
            if not self._quiet:
                print(line, end="", file=sys.stderr, flush=True)

    def _wait(self) -> int:
        code = None
        try:
            while code is None:
                try:
                    code = self._process.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    pass
                self._events.hand_on()
                self._print_held(0.5)
        except BaseException:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            raise
        return code

    def _pass_on(self, number: int, frame: Optional[FrameType]) -> None:
        self._caught.append(number)
        process = getattr(self, "_process", None)
        if process is not None:
            process.send_signal(number)

    def _finished_directory(self) -> Path:
        if not self._run_file.exists():
            raise UsageError(f"{self._command[0]} is older than this package: install those of one version")
        directory = _directory_in(self._run_file)
        # Leave the error of a failed or stopped run to rank 0, whose exit code is to be mpirun's: as the program, the
        # other ranks end without one.
        if launched_rank() > 0 and [event.get("event") for event in Run(directory).events()[-1:]] != ["end"]:
            sys.exit(0)
        return directory


_libc = ctypes.CDLL(None)


def _end_with_python() -> None:
    """In the program, before it begins: where Python is killed, as when a notebook is restarted, it saves and stops."""
    set_parent_death_signal = 1
    _libc.prctl(set_parent_death_signal, signal.SIGTERM)


def _read_lines(stream: IO[str], take: Callable[[str], object]) -> None:
    with stream:
        for line in stream:
            take(line)


@contextmanager
def _catching(handler: Callable[[int, Optional[FrameType]], None]) -> Iterator[None]:
    """Signals that ask to stop go to `handler` meanwhile. Only Python's main thread may do that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old if old is not None else signal.SIG_DFL)
