# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The rival of `bench step` on a GPU: Net, LeNet or a ResNet of torchvision in PyTorch, one GPU, fp32 without TF32.

The strongest baselines we know of. All images lie on the GPU as uint8; a step gathers and normalises its batch there, and
finds its place in the epoch there, too, so that nothing is copied from the host. SGD is the fused one, cuDNN picks its
fastest algorithms. A step may be run in several modes:

  eager          the step as it is written
  graph          the whole step, update included, as one CUDA graph
  compile        model and loss through torch.compile(mode="reduce-overhead"), as PyTorch recommends it for small models
  compile-graph  model and loss through torch.compile, and the whole step as one CUDA graph
  tuned-graph    the same with torch.compile(mode="max-autotune-no-cudagraphs"), which tries kernels of its own beside cuDNN's
  fp32           eager; and in other precisions: tf32, bf16 (autocast)

ResNets take 3x224x224 images of noise, channels last. --int8 multiplies int8 matrices instead, and prints TOPS.

Every mode runs in a process of its own, so that one which takes too long to compile is ended and the others still race.
They start together and then take turns: each round times --steps steps of every mode, one after another, and then runs
the shell command --between, if there is one (a turn of the program that PyTorch is compared with). Prints one JSON object
a line: first the facts, then for each mode its median in microseconds a step, all rounds, and the mean loss of the first
and the last round; or why it does not run here. Ended early (SIGTERM), it prints what the rounds so far came to. Needs
torch and numpy.
"""
import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
from idx import read_idx  # noqa: E402
from torch_ddp import MODELS  # noqa: E402

MODES = ["eager", "graph", "compile", "compile-graph", "tuned-graph"]
PRECISIONS = ["fp32", "tf32", "bf16"]
RESNETS = ["resnet18", "resnet50"]
INT8_PRODUCTS = [(8192, 8192, 8192), (200704, 64, 576), (50176, 512, 4608)]  # the last ones are convolutions of ResNets at batch 64
COMPILE_MODE = {"compile": "reduce-overhead", "compile-graph": "default", "tuned-graph": "max-autotune-no-cudagraphs"}


def make_model(name):
    if name in RESNETS:
        import torchvision

        return getattr(torchvision.models, name)().to(memory_format=torch.channels_last)
    return MODELS[name]()


def load_data(arguments):
    """MNIST, or as many images of noise, which take the same time."""
    directory, samples = arguments.data, arguments.samples
    if arguments.model in RESNETS:
        images = np.random.default_rng(1234).integers(0, 256, (256, 3, 224, 224), np.uint8)
        return images, np.arange(256) % 1000
    if directory:
        return read_idx(directory, "train-images-idx3-ubyte"), read_idx(directory, "train-labels-idx1-ubyte")
    generator = np.random.default_rng(1234)
    return generator.integers(0, 256, (samples, 28, 28), np.uint8), generator.integers(0, 10, samples, np.uint8)


class Training:
    """A model with its data and its place in an endless series of epochs, all on the device."""

    def __init__(self, arguments, images, labels, mode):
        torch.manual_seed(1234)
        device = arguments.device
        self.images = torch.from_numpy(images.copy()).to(device)
        self.labels = torch.from_numpy(labels.astype(np.int64)).to(device)
        self.order = torch.randperm(len(labels) // arguments.batch * arguments.batch, device=device)
        self.offsets = torch.arange(arguments.batch, device=device)
        self.position = torch.zeros((), dtype=torch.int64, device=device)
        self.loss_sum = torch.zeros((), device=device)
        self.batch = arguments.batch
        self.model = make_model(arguments.model).to(device)
        fused = {"fused": True} if device == "cuda" else {}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.5, **fused)
        self.loss_of = self.loss_in_bf16 if mode == "bf16" else self.loss
        if mode in COMPILE_MODE:
            self.loss_of = torch.compile(self.loss, mode=COMPILE_MODE[mode])

    def loss(self, pixels, labels):
        x = pixels.float() * (1 / (255 * 0.3081)) - 0.1307 / 0.3081
        x = x.unsqueeze(1) if x.dim() == 3 else x.contiguous(memory_format=torch.channels_last)
        return F.cross_entropy(self.model(x), labels)

    def loss_in_bf16(self, pixels, labels):
        with torch.autocast(self.images.device.type, torch.bfloat16):
            return self.loss(pixels, labels)

    def step(self):
        index = self.order[self.position + self.offsets]
        loss = self.loss_of(self.images[index], self.labels[index])
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss_sum.add_(loss.detach())
        self.position.add_(self.batch).remainder_(len(self.order))

    def take_loss(self, steps):
        loss = float(self.loss_sum) / steps
        self.loss_sum.zero_()
        return loss


def captured(training):
    """The whole step as a CUDA graph. It is warmed up on a stream of its own, as capturing wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            training.step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    training.graph = graph
    return graph.replay


def contend(arguments, mode):
    """The process of one mode: says that it is ready, or why not; then times as many steps as each line of stdin says."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # compilers are talkative

    def answer(values):
        answers.write(json.dumps(values) + "\n")

    try:
        if "graph" in mode and arguments.device == "cpu":
            raise RuntimeError("a CPU has no CUDA graphs")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode in ("tf32", "bf16")
        training = Training(arguments, *load_data(arguments), mode)
        run = captured(training) if "graph" in mode else training.step
        turn(arguments, training, run, 20)
    except (Exception, SystemExit) as error:  # whatever a mode fails with, the others still race
        answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
        return
    answer(facts(arguments))
    for line in sys.stdin:
        answer(turn(arguments, training, run, int(line)))


def turn(arguments, training, run, steps):
    synchronize(arguments.device)
    start = time.perf_counter()
    for _ in range(steps):
        run()
    synchronize(arguments.device)
    microseconds = (time.perf_counter() - start) / steps * 1e6
    return {"us": microseconds, "loss": training.take_loss(steps)}


class Contender:
    """One mode in its process, with what its turns took."""

    def __init__(self, mode):
        self.mode, self.turns, self.error = mode, [], None
        command = [sys.executable, __file__, *sys.argv[1:], "--contend", mode]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)

    def wait_until_ready(self, end):
        """Its facts, or None: then error says why."""
        if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            self.error = "took longer than --budget to start"
            self.stop()
            return None
        answer = self.read()
        self.error = answer.get("error")
        return None if self.error else answer

    def take_turn(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its process is gone; reading says so
        answer = self.read()
        self.error = answer.get("error")
        if not self.error:
            self.turns.append(answer)

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"its process ended with code {self.process.wait()}"}

    def stop(self):
        """It goes with what it compiles in processes of its own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def report(self):
        if not self.turns:
            return {"mode": self.mode, "error": self.error or "ended before its first turn"}
        microseconds = [turn["us"] for turn in self.turns]
        return {
            "mode": self.mode,
            "us_per_step": round(statistics.median(microseconds), 3),
            "rounds": [round(value, 3) for value in microseconds],
            "first_loss": round(self.turns[0]["loss"], 5),
            "last_loss": round(self.turns[-1]["loss"], 5),
        }


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def facts(arguments):
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    cudnn = torch.backends.cudnn.version() if arguments.device == "cuda" else None
    return {
        "torch": torch.__version__, "device": name, "cudnn": cudnn, "model": arguments.model, "batch": arguments.batch,
        "steps": arguments.steps, "data": arguments.data or "noise",
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="net", choices=["net", "lenet", *RESNETS])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--data", help="holds the MNIST files, plain or .gz; without it the images are noise")
    parser.add_argument("--samples", type=int, default=60000, help="of noise")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES + PRECISIONS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--between", help="a shell command to run after each round")
    parser.add_argument("--budget", type=float, default=240, help="seconds for the modes to compile and capture")
    parser.add_argument("--int8", action="store_true", help="products of int8 matrices, and nothing else")
    parser.add_argument("--contend", choices=MODES + PRECISIONS, help=argparse.SUPPRESS)
    return parser.parse_args()


def multiply_int8(device, rounds=20):
    """Speed of the library's int8 product of each shape: rows x columns x inner."""
    for rows, columns, inner in INT8_PRODUCTS:
        a, b = (torch.randint(-128, 128, (n, inner), dtype=torch.int8, device=device) for n in (rows, columns))
        for turn in range(2 * rounds):
            if turn == rounds:
                synchronize(device)
                start = time.perf_counter()
            torch._int_mm(a, b.t())
        synchronize(device)
        tops = 2e-12 * rows * columns * inner * rounds / (time.perf_counter() - start)
        print(json.dumps({"int8": f"{rows}x{columns}x{inner}", "tops": round(tops, 1)}), flush=True)


def race(arguments, contenders):
    end = time.monotonic() + arguments.budget
    ready = [found for found in [contender.wait_until_ready(end) for contender in contenders] if found]
    if ready:
        print(json.dumps(ready[0]), flush=True)
    for _ in range(arguments.rounds):
        for contender in contenders:
            if not contender.error:
                contender.take_turn(arguments.steps)
        if arguments.between:
            subprocess.run(arguments.between, shell=True, check=True)


def main():
    arguments = parse_arguments()
    torch.backends.cudnn.benchmark = True
    if arguments.int8:
        multiply_int8(arguments.device)
        return
    if arguments.contend:
        contend(arguments, arguments.contend)
        return
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    contenders = [Contender(mode) for mode in arguments.modes]
    try:
        race(arguments, contenders)
    finally:
        for contender in contenders:
            contender.stop()
            print(json.dumps(contender.report()), flush=True)
    if not any(contender.turns for contender in contenders):
        sys.exit("versus_torch: no mode of PyTorch ran")


if __name__ == "__main__":
    main()
