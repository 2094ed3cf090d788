# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The program behind this package: where it is, what it needs to start, what it answers, and its errors.

Needs nothing but the standard library: the command `lockstep` of the wheel loads this file alone.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

FORMAT = 1  # version of the --json answers that this package can read


class Error(Exception):
    """Error with the program's own message. `code` is its exit code, for `sys.exit`."""

    code = 70

    def __init__(self, sentence: str, code: Optional[int] = None) -> None:
        super().__init__(sentence)
        if code is not None:
            self.code = code


class Refuted(Error):
    """`Run.prove()`: the run was not computed as its files say."""

    code = 1


class UsageError(Error, ValueError):
    """Wrong arguments, job or model."""

    code = 2


class DataError(Error, ValueError):
    """Damaged data or a damaged checkpoint; data that the run was not trained on."""

    code = 65


class MissingDataError(Error, FileNotFoundError):
    """A file that is not there."""

    code = 66


class DeviceError(Error):
    """A device, memory or the program itself is not available."""

    code = 69


class InternalError(Error):
    """An error inside the program, or NaN in losses, gradients or weights."""


class PeerLostError(Error):
    """Another rank was lost. The same call goes on from the newest checkpoint."""

    code = 71


class WrongRankError(Error):
    """Numbers of a rank are wrong. The message names the rank, its host and what was at fault."""

    code = 72


class IoError(Error, OSError):
    """A file could not be read or written."""

    code = 74


class Stopped(Error):
    """The run was told to stop and is saved. The same call goes on."""

    code = 75


_KINDS = (UsageError, DataError, MissingDataError, DeviceError, InternalError, PeerLostError, WrongRankError, IoError,
          Stopped)


def error_of(code: int, said: str) -> Error:
    """The exception for an exit code, or minus a signal, and what stood on standard error: its last sentence counts."""
    lines = [line for line in said.strip().splitlines() if line.strip()]
    own = [line[len("lockstep: "):] for line in lines if line.startswith("lockstep: ")]
    sentence = own[-1] if own else "\n".join(lines[-3:])
    if code < 0:  # it could not say why: its last words may be a note from long before
        sentence = f"the program was ended by signal {-code}" + (f"; it said last: {lines[-1]}" if lines else "")
    elif not sentence:
        sentence = f"the program ended with exit code {code}"
    for kind in _KINDS:
        if kind.code == code:
            return kind(sentence)
    return Error(sentence, 128 - code if code < 0 else code)


# Location of the program: $LOCKSTEP_PROGRAM, in this package, or on PATH.

BUNDLE = Path(__file__).resolve().parent / "_bundle"


def program() -> Path:
    """The program that this package starts. `$LOCKSTEP_PROGRAM` names another one.

    Raises:
        DeviceError: there is none.
    """
    bundled = BUNDLE / "libexec" / "lockstep"
    own = os.environ.get("LOCKSTEP_PROGRAM") or (str(bundled) if bundled.is_file() else None) or shutil.which("lockstep")
    if own is None or not os.access(own, os.X_OK):
        raise DeviceError(f"no program {own or 'lockstep'}: install the wheel that launch/wheel makes, or set LOCKSTEP_PROGRAM")
    return Path(own).resolve()


def shared_folder(name: str) -> Path:
    """A folder that comes with the program: models, jobs."""
    installed = program().parent.parent / "share" / "lockstep" / name
    source = program().parent.parent.parent / ("launch/jobs" if name == "jobs" else name)
    return installed if installed.is_dir() else source


# Environment of the program. The bundle's libraries come first. Open MPI's are those of the mpirun that started this
# process, so that both ends are one version, and otherwise the bundle's own.

_MPI = "libmpi.so.40"
_LAUNCHERS = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted"}


def _launched(names: Sequence[str], otherwise: int) -> int:
    """The first of those variables that is a number. Slurm sets its own in batch scripts, too: only steps count."""
    known = [name for name in names if not name.startswith("SLURM") or "SLURM_STEPID" in os.environ]
    return next((int(os.environ[name]) for name in known if os.environ.get(name, "").isdigit()), otherwise)


def launched_rank() -> int:
    """The rank that mpirun or srun gave this process; 0 without them."""
    return _launched(("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"), 0)


def launched_size() -> int:
    """How many ranks mpirun or srun started; 1 without them."""
    return _launched(("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"), 1)


def _launcher() -> Optional[Path]:
    """The mpirun, or its daemon on this host, below which this process runs."""
    process = os.getpid()
    while True:  # the first process has no parent
        try:
            process = int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1])
            running = Path(os.readlink(f"/proc/{process}/exe"))
        except OSError:
            return None
        if running.name in _LAUNCHERS:
            return running


def open_mpi_of_launcher() -> Optional[Path]:
    """The folder of the libmpi that belongs to the mpirun which started this process; None: there is none of Open MPI."""
    launcher = _launcher() if "OMPI_COMM_WORLD_SIZE" in os.environ else None
    if launcher is None:
        return None
    prefix = launcher.parent.parent
    multiarch = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"
    given = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    beside = [prefix / "lib", prefix / "lib64", prefix / "lib" / multiarch, prefix / "lib" / multiarch / "openmpi" / "lib"]
    return next((folder for folder in beside + given if (folder / _MPI).exists()), None)


def _is_searched_anyway(folder: Path) -> bool:
    """True if the loader looks there by itself. Such a folder must not come before the bundle's libraries."""
    return str(folder.resolve()).startswith(("/lib", "/usr/lib")) and "openmpi" not in folder.parts


def _cuda_folders() -> List[str]:
    """Folders that may hold NCCL, cuDNN and cuBLAS: the toolkit, and NVIDIA's wheels beside this package."""
    sites = {sysconfig.get_path("purelib"), str(Path(__file__).resolve().parent.parent)}
    wheels = sorted(str(folder) for site in sites for folder in Path(site).glob("nvidia/*/lib"))
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"
    return ([str(toolkit)] if toolkit.is_dir() else []) + wheels


def environment() -> Dict[str, str]:
    """The environment in which the program starts; that of this process where the program is not the bundle's."""
    env = dict(os.environ)
    if not str(program()).startswith(str(BUNDLE)):
        return env
    folders = [str(BUNDLE / "lib")]
    mpi = open_mpi_of_launcher()
    if mpi is None:
        folders.append(str(BUNDLE / "mpi"))
        pmix = str(BUNDLE / "pmix")
        env.update(OPAL_PREFIX=str(BUNDLE), OPAL_SYSCONFDIR=str(BUNDLE / "etc/openmpi"), PMIX_PREFIX=pmix, PMIX_EXEC_PREFIX=pmix,
                   PMIX_LIBDIR=pmix + "/lib", PMIX_DATADIR=pmix + "/share", HWLOC_PLUGINS_PATH=str(BUNDLE / "lib/hwloc"))
    elif not _is_searched_anyway(mpi):
        folders.append(str(mpi))
    before = [folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder]
    env["LD_LIBRARY_PATH"] = ":".join(folders + before + _cuda_folders())
    return env


def main() -> NoReturn:
    """The command `lockstep`: this process becomes the program."""
    try:
        os.execve(program(), ["lockstep", *sys.argv[1:]], environment())
    except Error as error:
        sys.exit(f"lockstep: {error}")
    except OSError as error:
        sys.exit(f"lockstep: {program()}: {error.strerror}")


# Asking it. What it is asked is not the work of ranks: a launcher's variables are left out.


def _alone() -> Dict[str, str]:
    env = environment()
    launchers = ("OMPI_", "PMIX_", "PMI_", "SLURM_")
    kept = ("PMIX_PREFIX", "PMIX_EXEC_PREFIX", "PMIX_LIBDIR", "PMIX_DATADIR")
    return {name: value for name, value in env.items() if not name.startswith(launchers) or name in kept}


def _run(arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(program()), *arguments], env=_alone(), stdin=subprocess.DEVNULL, capture_output=True,
                          encoding="utf-8", errors="replace", check=False)


def argument(path: Union[str, "os.PathLike[str]"]) -> str:
    """A path as commands take it: one that begins with a dash would be an option."""
    text = os.fspath(path)
    return f"./{text}" if text.startswith("-") else text


def call(*arguments: str) -> str:
    """Runs a command of the program and returns what it prints: `call("devices")`.

    Raises:
        Error: it failed; with the program's sentence.
    """
    done = _run(arguments)
    if done.returncode != 0:
        raise error_of(done.returncode, done.stderr)
    return done.stdout


def version() -> str:
    """Version of the wheel, or where the package is used from its source, of the program."""
    from importlib import metadata  # slow, and the command needs none

    try:
        return metadata.version("lockstep")
    except metadata.PackageNotFoundError:
        return call("--version").split()[1]


def ask(*arguments: str) -> Dict[str, Any]:
    """The answer of a command with `--json`.

    Raises:
        Error: the command failed, or its answer has a format that this package does not know.
    """
    return answer_and_code(arguments, (0,))[0]


def answer_and_code(arguments: Sequence[str], allowed: Sequence[int]) -> Tuple[Dict[str, Any], int]:
    """Runs a command that may answer and end with one of several exit codes."""
    done = _run([*arguments, "--json"])
    if done.returncode not in allowed or (done.returncode != 0 and not done.stdout):
        raise error_of(done.returncode, done.stderr)
    try:
        answer = json.loads(done.stdout)
        known = answer.get("format")
    except (ValueError, AttributeError):
        raise InternalError(f"lockstep {arguments[0]} --json did not answer with an object: {done.stdout[:200]!r}") from None
    if known != FORMAT:
        raise UsageError(f"lockstep {arguments[0]} answers in format {known}, this package reads {FORMAT}: install those of one version")
    return dict(answer), done.returncode
