#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes the files of this folder that tests compare with PyTorch (1.13 or later; averages: 2.0):

    python3 tests/golden/make_golden.py NAME...

    layers       100 steps of networks with every layer, four files, for tests/models/golden_layers_test.cpp
    batch_norm   100 steps with batch normalisation, for batch_norm_test.cpp of a training
    training     100 steps of Net on Fashion-MNIST (Debian's dataset-fashion-mnist), for tests/models/golden_training_test.cpp
    losses       50 steps under each loss
    optimizers   100 steps of each optimiser, and the rates of schedules
    updates      100 steps with clipping, groups, frozen tensors, and the younger optimisers
    averages     averages of weights after each of 50 steps
    state_dict   a network that PyTorch trained, as safetensors.torch saves it (pip install safetensors), and its answers
    python       a tensor of each kind, as safetensors saves them

Weights and samples are drawn in float32 and everything is computed in float64, so that the files hold right answers rather
than one machine's rounding. The test of a file has the same cases by the same names.
"""
import gzip
import json
import pathlib
import struct
import sys

if len(sys.argv) < 2 or {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import lr_scheduler as schedulers

HERE = pathlib.Path(__file__).parent
DTYPES = {
    torch.float32: "F32", torch.float64: "F64", torch.uint8: "U8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64"
}


def write_safetensors(name, tensors):
    """Eight bytes of header length, JSON, then the bytes of the tensors: see huggingface/safetensors, "Format"."""
    header, data = {"__metadata__": {"made_by": pathlib.Path(__file__).name, "torch": torch.__version__}}, b""
    for key, tensor in tensors.items():
        numbers = tensor.detach().contiguous().numpy()
        raw = numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()
        header[key] = {
            "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = HERE / name
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes, PyTorch {torch.__version__}")


# Networks.


class Network(nn.Module):
    """Layers by their names, in the order in which their weights are drawn, and what is computed with them."""

    def __init__(self, compute, **layers):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.compute = compute

    def forward(self, x):
        return self.compute(self, x)


def state_of(net):
    return {name: value.clone() for name, value in net.state_dict().items() if "num_batches" not in name}


def record_training(net, images, labels, batch, steps, **options):
    """Trains in float64 with torch.optim.SGD(**options), batch after batch in their order; the last one of an epoch may be
    smaller. Returns samples, losses, and all weights before, after one step and at the end."""
    tensors = {"images": images, "labels": labels.int()}
    tensors.update({f"initial.{name}": value for name, value in state_of(net).items()})
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), **options)
    losses = []
    for step in range(steps):
        first = step % -(-len(labels) // batch) * batch
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[first : first + batch].double()), labels[first : first + batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 0:
            tensors.update({f"once.{name}": value for name, value in state_of(net).items()})
    tensors["losses"] = torch.stack(losses)
    tensors.update({f"final.{name}": value for name, value in state_of(net).items()})
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    return tensors


def record_network(name, net, height, width, batch=16, rate=0.05):
    """100 steps on 64 samples of 4 classes. Returns what was recorded."""
    images = torch.randn(64, 2, height, width) * (0.5 if name == "batch_norm" else 1) + (name == "batch_norm")
    labels = torch.randint(0, 4, (64,))
    images[torch.arange(64), 0, 0, labels] += 3  # something to learn
    return record_training(net, images, labels, batch, 100, lr=rate, momentum=0.5)


def smooth(n, x):
    """No relu and no max-pool, so that rounding cannot turn a decision."""
    start = torch.tanh(n.conv1(x))
    x = torch.sigmoid(F.gelu(n.conv2(start)) + start)
    x = F.gelu(n.conv3(x), approximate="tanh") + start
    return n.fc2(torch.tanh(n.fc1(x.mean(dim=(2, 3)))))


def pictures(n, x):
    """A stem, a pool whose windows overlap, groups, dilation, a depthwise convolution, relu6."""
    start = F.relu6(n.conv2(F.max_pool2d(torch.tanh(n.conv1(x)), 3, 2, 1)))
    x = n.conv4(torch.tanh(n.conv3(start))) + start
    return n.fc1(torch.tanh(n.conv5(x)).mean(dim=(2, 3)))


def modern(n, x):
    """Few bends."""
    body = F.silu(n.gn1(n.conv1(x)))
    gate = F.hardsigmoid(n.fc2(F.elu(n.fc1(body.mean(dim=(2, 3))), alpha=0.7)))
    narrow = F.leaky_relu(n.conv2(body * gate[:, :, None, None]), 0.1)
    x = torch.cat([narrow, F.hardswish(n.conv3(narrow))], 1)
    return n.fc3(n.ln1(F.adaptive_avg_pool2d(x, 4)).flatten(1))


def transposed(n, x):
    x = F.silu(n.conv2(torch.tanh(n.conv1(x))))
    return n.fc1(torch.tanh(n.conv4(torch.tanh(n.conv3(x)))).flatten(1))


def conv3(inputs, outputs, **options):
    return nn.Conv2d(inputs, outputs, 3, padding=1, **options)


def layers():
    net = Network(smooth, conv1=conv3(2, 5), conv2=conv3(5, 5), conv3=conv3(5, 5), fc1=nn.Linear(5, 9), fc2=nn.Linear(9, 4))
    write_safetensors("layers.safetensors", record_network("layers", net, 6, 7))
    net = Network(
        pictures, conv1=nn.Conv2d(2, 6, 7, stride=2, padding=3), conv2=nn.Conv2d(6, 9, 3, padding=2, dilation=2, groups=3),
        conv3=conv3(9, 9, groups=9), conv4=nn.Conv2d(9, 9, 1), conv5=conv3(9, 8, stride=2), fc1=nn.Linear(8, 4))
    write_safetensors("pictures.safetensors", record_network("pictures", net, 13, 11))
    torch.manual_seed(20261122)
    net = Network(
        modern, conv1=conv3(2, 6), gn1=nn.GroupNorm(3, 6), fc1=nn.Linear(6, 4), fc2=nn.Linear(4, 6), conv2=conv3(6, 4),
        conv3=conv3(4, 4), ln1=nn.LayerNorm([8, 4, 4], eps=1e-4), fc3=nn.Linear(128, 4))
    write_safetensors("modern_layers.safetensors", record_network("modern", net, 6, 7, rate=0.01))
    torch.manual_seed(20261122)
    net = Network(
        transposed, conv1=nn.Conv2d(2, 6, 3, stride=2),
        conv2=nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1, output_padding=1, groups=2),
        conv3=nn.ConvTranspose2d(8, 4, (2, 3), dilation=2, bias=False), conv4=nn.ConvTranspose2d(4, 3, 3, padding=1),
        fc1=nn.Linear(300, 4))
    write_safetensors("transposed.safetensors", record_network("transposed", net, 9, 8))


def normalised(n, x):
    start = torch.tanh(n.bn1(n.conv1(x)))
    x = F.gelu(n.bn2(n.conv2(start))) + start
    return n.fc2(torch.tanh(n.bn3(n.fc1(x.mean(dim=(2, 3))))))


def batch_norm():
    """The last batch of an epoch is smaller."""
    net = Network(
        normalised, conv1=conv3(2, 5), bn1=nn.BatchNorm2d(5), conv2=conv3(5, 5),
        bn2=nn.BatchNorm2d(5, eps=0.01, momentum=0.3, affine=False), fc1=nn.Linear(5, 9), bn3=nn.BatchNorm1d(9, eps=1e-3),
        fc2=nn.Linear(9, 4))
    tensors = record_network("batch_norm", net, 6, 7, batch=20)
    net.eval()
    with torch.no_grad():
        tensors["evaluated"] = F.cross_entropy(net(tensors["images"].double()), tensors["labels"].long()).reshape(1)
    write_safetensors("batch_norm.safetensors", tensors)


def restored(n, x):
    x = F.max_pool2d(F.relu(n.bn1(n.conv1(x))), 2)
    return n.fc2(F.relu(n.fc1(torch.tanh(n.conv2(x)).flatten(1))))


def state_dict():
    from safetensors.torch import save_file

    net = Network(
        restored, conv1=conv3(2, 4, bias=False), bn1=nn.BatchNorm2d(4), conv2=nn.Conv2d(4, 6, (2, 3), stride=2),
        fc1=nn.Linear(24, 8), fc2=nn.Linear(8, 5, bias=False))
    images, labels = torch.randn(16, 2, 9, 12), torch.randint(0, 5, (16,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
    save_file(net.state_dict(), HERE / "torch_state_dict.safetensors")
    net.double().eval()
    with torch.no_grad():
        logits = net(images.double())
    write_safetensors("torch_answers.safetensors", {"images": images, "logits": logits})


def python():
    from safetensors.torch import save_file

    save_file({
        "conv1.weight": (torch.arange(250.0) / 8 - 3).reshape(10, 1, 5, 5),
        "conv1.bias": torch.linspace(-1, 1, 10, dtype=torch.float64).float(),
        "counts": torch.tensor([-1, 0, 2**62]),
        "pixels": torch.arange(7, dtype=torch.uint8),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
    }, HERE / "python.safetensors", metadata={"made_by": "python"})


def plain_net(n, x):
    x = F.relu(F.max_pool2d(n.conv1(x), 2))
    x = F.relu(F.max_pool2d(n.conv2(x), 2))
    return n.fc2(F.relu(n.fc1(x.flatten(1))))


def make_net():
    return Network(
        plain_net, conv1=nn.Conv2d(1, 10, 5), conv2=nn.Conv2d(10, 20, 5), fc1=nn.Linear(320, 50), fc2=nn.Linear(50, 10))


def read_idx(name, header_bytes, bytes_per_sample):
    """The first 512 samples of an IDX file."""
    with gzip.open(f"/usr/share/datasets/fashion-mnist/{name}.gz") as file:
        content = file.read(header_bytes + 512 * bytes_per_sample)
    return torch.tensor(list(content[header_bytes:]), dtype=torch.uint8)


def train_net(weights, images, labels, order, dtype):
    """Losses before each step, and the final weights."""
    net = make_net().to(dtype)
    net.load_state_dict({name: weight.to(dtype) for name, weight in weights.items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
    inputs = ((images.to(dtype) / 255) - 0.1307) / 0.3081
    values = []
    for indices in order:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs[indices]), labels[indices].long())
        loss.backward()
        optimizer.step()
        values.append(loss.detach())
    return torch.stack(values), state_of(net)


def training():
    """models/net.yaml without its dropout layers, in float32.

    Training is not continuous: where a max-pool or relu decides a near-tie, rounding alone can turn the decision, and the
    images' constant background makes it turn at hundreds of pixels at once. PyTorch's own float32 and float64 then drift
    apart by up to 1e-2 in 100 steps. The seed meets no such tie: the two agree within 1e-6 at every step, so that whoever
    disagrees with the file computes something else. Written only if that holds.
    """
    images = read_idx("train-images-idx3-ubyte", 16, 784).reshape(512, 1, 28, 28)
    labels = read_idx("train-labels-idx1-ubyte", 8, 1)
    initial = state_of(make_net())
    order = torch.cat([torch.randperm(512) for _ in range(13)])[:6400].reshape(100, 64)
    values, final = train_net(initial, images, labels, order, torch.float32)
    exact, _ = train_net(initial, images, labels, order, torch.float64)
    rounding = ((values - exact) / exact).abs().max().item()
    print(f"loss {values[0]:.4f} -> {values[-1]:.4f}; float32 is within {rounding:.1e} of float64")
    if rounding > 1e-6:
        sys.exit("error: this seed meets a near-tie with this PyTorch on this machine; choose another")
    tensors = {"images": images.reshape(512, 784), "labels": labels, "order": order.to(torch.int16), "losses": values}
    for when, weights in (("initial", initial), ("final", final)):
        tensors.update({f"{when}.{name}": weight for name, weight in weights.items()})
    write_safetensors("net_100_steps.safetensors", tensors)


# Losses: a linear layer is trained by plain SGD on samples of classes that are not equally frequent.

SAMPLES, FEATURES, CLASSES, BATCH, RATE = 96, 7, 5, 20, 0.2
WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.25], dtype=torch.float64)


def smoothed(labels, smoothing):
    return F.one_hot(labels, CLASSES).double() * (1 - smoothing) + smoothing / CLASSES


def hard_losses(labels):
    """By name: from outputs and labels to the mean."""
    balanced = len(labels) / (CLASSES * torch.bincount(labels, minlength=CLASSES).double())
    return {
        "plain": lambda z, y: F.cross_entropy(z, y),
        "smoothed": lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1),
        "weights": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS),
        "balanced": lambda z, y: F.cross_entropy(z, y, weight=balanced),
        "both": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS, label_smoothing=0.3),
        "mse": lambda z, y: F.mse_loss(z, F.one_hot(y, CLASSES).double()),
        "mse_smoothed": lambda z, y: F.mse_loss(z, smoothed(y, 0.2)),
        "binary": lambda z, y: F.binary_cross_entropy_with_logits(z, F.one_hot(y, CLASSES).double()),
        "binary_smoothed": lambda z, y: F.binary_cross_entropy_with_logits(z, smoothed(y, 0.2)),
    }


def mixed_losses():
    """Loss for targets that are probabilities."""
    return {
        "mixed": lambda z, y: F.cross_entropy(z, y),
        "mixed_smoothed": lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1),
        "mixed_weights": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS),
        "mixed_both": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS, label_smoothing=0.3),
    }


def train_linear(criterion, samples, targets, batches, initial):
    """targets: of each batch"""
    weight = initial.clone().requires_grad_()
    values = []
    for batch, target in zip(batches, targets):
        loss = criterion(samples[batch].double() @ weight.T, target)
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= RATE * gradient
        values.append(loss.detach())
    return torch.stack(values), weight.detach()


def losses():
    """Samples of each step, second labels with their shares, weights before the first; batches' losses, weights after all."""
    samples = torch.randn(SAMPLES, FEATURES)
    labels = torch.multinomial(torch.tensor([0.4, 0.1, 0.25, 0.2, 0.05]), SAMPLES, replacement=True)
    labels[:CLASSES] = torch.arange(CLASSES)
    initial = torch.randn(CLASSES, FEATURES, dtype=torch.float64) * 0.3
    epochs = -(-50 // -(-SAMPLES // BATCH))
    batches = [batch for _ in range(epochs) for batch in torch.randperm(SAMPLES).split(BATCH)][:50]
    tensors = {"samples": samples, "labels": labels.int(), "initial": initial,
               "order": torch.cat(batches).int(), "batch_sizes": torch.tensor([len(batch) for batch in batches]).int()}
    hard = [labels[batch] for batch in batches]
    second = torch.randint(CLASSES, (len(tensors["order"]),))
    shares = torch.randint(33, (len(second),)) / 64
    soft = [
        F.one_hot(label, CLASSES) * (1 - share.double()[:, None]) + F.one_hot(other, CLASSES) * share.double()[:, None]
        for label, other, share in zip(hard, second.split([len(b) for b in batches]), shares.split([len(b) for b in batches]))
    ]
    tensors["second"], tensors["shares"] = second.int(), shares
    cases = {**{name: (criterion, hard) for name, criterion in hard_losses(labels).items()},
             **{name: (criterion, soft) for name, criterion in mixed_losses().items()}}
    sets = torch.rand(SAMPLES, CLASSES) < 0.3
    tensors["label_sets"] = sets.to(torch.uint8)
    cases["several_labels"] = (F.binary_cross_entropy_with_logits, [sets[batch].double() for batch in batches])
    for name, (criterion, targets) in cases.items():
        values, weight = train_linear(criterion, samples, targets, batches, initial)
        print(f"{name}: {values[0]:.4f} -> {values[-1]:.4f}")
        tensors[f"{name}.losses"], tensors[f"{name}.final"] = values, weight
    write_safetensors("losses.safetensors", tensors)


# Optimisers: weights before the first of STEPS steps and its gradients (float32), weights after one and after all (float64).

STEPS = 100
SGD, Adam, AdamW, RMSprop = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop


class Lars(SGD):
    """apex.parallel.LARC(SGD, clip=False), from its source."""

    def __init__(self, params, lr, momentum, weight_decay, trust_coefficient=0.001, eps=1e-8):
        super().__init__(params, lr=lr, momentum=momentum)
        for group in self.param_groups:
            group.setdefault("decay", weight_decay)
        self.trust_coefficient, self.eps = trust_coefficient, eps

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if group.get("plain"):
                    continue
                w_norm, g_norm = p.data.norm(), p.grad.norm()
                if w_norm != 0 and g_norm != 0:
                    rate = self.trust_coefficient * w_norm / (g_norm + w_norm * group["decay"] + self.eps)
                    p.grad = (p.grad + group["decay"] * p.data) * rate
        super().step()


class Lamb(torch.optim.Optimizer):
    """timm.optim.Lamb without max_grad_norm and trust_clip, from its source: a tensor without decay is not adapted."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            group["step"] = group.get("step", 0) + 1
            correction1, correction2 = 1 - beta1 ** group["step"], 1 - beta2 ** group["step"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                divisor = (state["exp_avg_sq"].sqrt() / correction2**0.5).add_(group["eps"])
                update = (state["exp_avg"] / correction1).div_(divisor)
                if group["weight_decay"] != 0:
                    update.add_(p.data, alpha=group["weight_decay"])
                    w_norm, u_norm = p.data.norm(), update.norm()
                    if w_norm > 0 and u_norm > 0:
                        update.mul_(w_norm / u_norm)
                p.data.add_(update, alpha=-group["lr"])


class Lion(torch.optim.Optimizer):
    """Program 1 of Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad) + group["weight_decay"] * p.data
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)
                p.data.add_(update, alpha=-group["lr"])


def all_of(p):
    return list(p.values())


def part(p, prefix, **options):
    return {"params": [tensor for name, tensor in p.items() if name.startswith(prefix)], **options}


def biases_apart(p):
    return [
        {"params": [t for name, t in p.items() if name.endswith("weight")]},
        {"params": [t for name, t in p.items() if name.endswith("bias")], "weight_decay": 0},
    ]


def clip_norm(most):
    return lambda p: clip_grad_norm_([t for t in p.values() if t.grad is not None], most)


def clip_value(most):
    return lambda p: clip_grad_value_(all_of(p), most)


def freeze(prefix):
    def forget(p):
        for name, tensor in p.items():
            if name.startswith(prefix):
                tensor.grad = None

    return forget


def freeze_and_clip(prefix, most):
    return lambda p: (freeze(prefix)(p), clip_norm(most)(p))


def decayed(optimizer):
    """By step, as train.schedule {kind: exponential, gamma: 0.98, by: step}: every group's own rate."""
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)


def one_cycle(optimizer):
    return schedulers.OneCycleLR(optimizer, max_lr=optimizer.param_groups[0]["lr"], total_steps=STEPS)


# The optimiser, what is done to gradients before each step, and a schedule.
OPTIMIZERS = {
    "sgd": (lambda p: SGD(all_of(p), lr=0.1, weight_decay=0.01), None, None),
    "sgd_momentum": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, weight_decay=0.01), None, None),
    "sgd_nesterov": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, nesterov=True), None, None),
    "sgd_dampened": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, dampening=0.4, weight_decay=0.01), None, None),
    "sgd_climbing": (
        lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, dampening=0.1, weight_decay=0.01, maximize=True),
        None, None),
    "sgd_no_bias": (lambda p: SGD(biases_apart(p), lr=0.02, momentum=0.9, weight_decay=0.1), None, None),
    "adam": (lambda p: Adam(all_of(p)), None, None),
    "adam_decay": (lambda p: Adam(all_of(p), lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1), None, None),
    "adamw": (lambda p: AdamW(all_of(p)), None, None),
    "adamw_no_bias": (lambda p: AdamW(biases_apart(p), lr=0.01, weight_decay=0.1), None, None),
    "adam_climbing": (lambda p: Adam(all_of(p), lr=0.01, weight_decay=0.1, maximize=True), None, None),
    "adamw_climbing": (lambda p: AdamW(all_of(p), lr=0.01, weight_decay=0.1, maximize=True), None, None),
    "rmsprop": (lambda p: RMSprop(all_of(p)), None, None),
    "rmsprop_momentum": (
        lambda p: RMSprop(all_of(p), lr=0.001, alpha=0.9, eps=1e-6, momentum=0.9, weight_decay=0.01),
        None, None),
    "rmsprop_climbing": (
        lambda p: RMSprop(all_of(p), lr=0.001, momentum=0.9, weight_decay=0.01, maximize=True),
        None, None),
    "lars": (lambda p: Lars(all_of(p), lr=2, momentum=0.9, weight_decay=0.01), None, None),
    "lars_no_bias": (
        lambda p: Lars([{"params": [p["weight"]]}, {"params": [p["bias"]], "plain": True}], lr=0.1, momentum=0.9, weight_decay=0.1),
        None, None),
    "adam_one_cycle": (lambda p: Adam(all_of(p), lr=0.01), None, one_cycle),
    "sgd_one_cycle": (lambda p: SGD(all_of(p), lr=0.05, momentum=0.9), None, one_cycle),
    "rmsprop_one_cycle": (lambda p: RMSprop(all_of(p), lr=0.01, momentum=0.9), None, one_cycle),
}
UPDATES = {
    "clip_norm": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, weight_decay=0.01), clip_norm(1.0), None),
    "clip_norm_adam": (lambda p: Adam(all_of(p), lr=0.01), clip_norm(0.5), None),
    "clip_norm_never": (lambda p: SGD(all_of(p), lr=0.02), clip_norm(1e6), None),
    "clip_value": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9), clip_value(0.1), None),
    "groups": (
        lambda p: SGD([part(p, "conv", lr=0.002), part(p, "fc", weight_decay=0)], lr=0.02, momentum=0.9, weight_decay=0.1),
        None, None),
    "groups_schedule": (
        lambda p: AdamW([part(p, "conv", lr=0.001, weight_decay=0.3), part(p, "fc")], lr=0.01, weight_decay=0.1),
        None, decayed),
    "groups_decay_alone": (
        lambda p: Adam([part(p, "conv"), part(p, "fc", weight_decay=0.2)], lr=0.01, weight_decay=0),
        None, None),
    "groups_first": (
        lambda p: SGD([part(p, "fc.bias", lr=0.04), part(p, "fc.weight", lr=0.002), part(p, "conv")], lr=0.02),
        None, None),
    "freeze": (lambda p: Adam(all_of(p), lr=0.01, weight_decay=0.1), freeze("conv"), None),
    "freeze_clip_norm": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9), freeze_and_clip("fc.weight", 0.5), None),
    "amsgrad": (lambda p: Adam(all_of(p), lr=0.01, betas=(0.9, 0.9), amsgrad=True), None, None),
    "amsgrad_decay": (lambda p: AdamW(all_of(p), lr=0.01, betas=(0.8, 0.95), weight_decay=0.1, amsgrad=True), None, None),
    "amsgrad_climbing": (
        lambda p: Adam(all_of(p), lr=0.01, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True, maximize=True),
        None, None),
    "lamb": (lambda p: Lamb(all_of(p)), None, None),
    "lamb_no_bias": (lambda p: Lamb(biases_apart(p), lr=0.01, betas=(0.8, 0.99), weight_decay=0.1), None, None),
    "lamb_no_decay": (lambda p: Lamb(all_of(p), lr=0.01, weight_decay=0), None, None),
    "lamb_clip_norm": (lambda p: Lamb(all_of(p), lr=0.01), clip_norm(1.0), None),
    "lamb_groups": (
        lambda p: Lamb([part(p, "conv", lr=0.001), part(p, "fc", weight_decay=0)], lr=0.01, weight_decay=0.1),
        None, decayed),
    "lion": (lambda p: Lion(all_of(p)), None, None),
    "lion_decay": (lambda p: Lion(all_of(p), lr=0.01, betas=(0.5, 0.8), weight_decay=0.3), None, None),
    "lion_groups": (
        lambda p: Lion([part(p, "conv", lr=0.001), part(p, "fc", weight_decay=0)], lr=0.01, weight_decay=0.1),
        clip_value(0.1), decayed),
}

EPOCH, INITIAL_RATE = 5, 0.1
# By step: 100 of them; by epoch: 20 epochs of 5 steps.
SCHEDULES = {
    "constant": (1, lambda o: schedulers.ConstantLR(o, factor=1)),
    "step": (EPOCH, lambda o: schedulers.StepLR(o, step_size=6, gamma=0.3)),
    "step_by_step": (1, lambda o: schedulers.StepLR(o, step_size=30)),
    "multistep": (EPOCH, lambda o: schedulers.MultiStepLR(o, milestones=[3, 4, 15], gamma=0.5)),
    "multistep_by_step": (1, lambda o: schedulers.MultiStepLR(o, milestones=[10, 50])),
    "exponential": (EPOCH, lambda o: schedulers.ExponentialLR(o, gamma=0.9)),
    "polynomial": (EPOCH, lambda o: schedulers.PolynomialLR(o, total_iters=20, power=2)),
    "polynomial_by_step": (1, lambda o: schedulers.PolynomialLR(o, total_iters=60, power=0.5)),
    "cosine": (EPOCH, lambda o: schedulers.CosineAnnealingLR(o, T_max=20, eta_min=0.001)),
    "cosine_by_step": (1, lambda o: schedulers.CosineAnnealingLR(o, T_max=100)),
    "one_cycle": (1, lambda o: schedulers.OneCycleLR(o, max_lr=INITIAL_RATE, total_steps=100)),
    "one_cycle_linear": (
        1,
        lambda o: schedulers.OneCycleLR(
            o, max_lr=INITIAL_RATE, total_steps=100, pct_start=0.4, div_factor=10, final_div_factor=100, anneal_strategy="linear"
        ),
    ),
}
# The warm-up, then the schedule from its beginning: what SequentialLR is meant to be (in some releases of PyTorch it is not).
WARMED_UP = {
    "cosine_after_epochs": (EPOCH, 4, lambda o: schedulers.CosineAnnealingLR(o, T_max=16)),
    "step_after_epochs": (EPOCH, 5, lambda o: schedulers.StepLR(o, step_size=5, gamma=0.5)),
    "cosine_after_steps": (1, 10, lambda o: schedulers.CosineAnnealingLR(o, T_max=90)),
    "constant_after_steps": (1, 30, lambda o: schedulers.ConstantLR(o, factor=1)),
}


def flat(params):
    return torch.cat([p.detach().reshape(-1) for p in params.values()])


def train(case, initial, gradients):
    """Weights after the first and after the last step, arena order."""
    make, change, schedule = case
    params = {name: nn.Parameter(tensor.double().clone()) for name, tensor in initial.items()}
    optimizer = make(params)
    scheduler = schedule(optimizer) if schedule else None
    for step, gradient in enumerate(gradients):
        offset = 0
        for p in params.values():
            p.grad = gradient[offset : offset + p.numel()].double().reshape(p.shape).clone()
            offset += p.numel()
        if change:
            change(params)
        optimizer.step()
        if scheduler and step + 1 < STEPS:
            scheduler.step()
        if step == 0:
            first = flat(params)
    return first, flat(params)


def rates(make, every, count=STEPS):
    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=INITIAL_RATE, momentum=0.9)
    scheduler = make(optimizer)
    values = []
    for step in range(count):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0 and step + 1 < count:
            scheduler.step()
    return torch.tensor(values, dtype=torch.float64)


def draw_weights(shapes):
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def write_cases(name, cases, initial, gradients, more):
    tensors = {"initial": flat(initial), "gradients": gradients}
    for case, how in cases.items():
        tensors[f"first.{case}"], tensors[f"last.{case}"] = train(how, initial, gradients)
    write_safetensors(name, {**tensors, **more})


def optimizers():
    """LARS, which PyTorch lacks, is NVIDIA Apex's LARC without clipping around torch.optim.SGD."""
    initial = draw_weights({"weight": (5, 7), "bias": (5,)})
    gradients = 0.1 * torch.randn(STEPS, 40) + 0.1 * torch.randn(40)
    more = {f"rates.{name}": rates(make, every) for name, (every, make) in SCHEDULES.items()}
    for name, (every, warmup, make) in WARMED_UP.items():
        up = rates(lambda o: schedulers.LinearLR(o, start_factor=0.1, total_iters=warmup), every, warmup * every)
        more[f"rates.{name}"] = torch.cat([up, rates(make, every, STEPS - warmup * every)])
    write_cases("optimizers.safetensors", OPTIMIZERS, initial, gradients, more)


def updates():
    """LAMB, which PyTorch lacks, is timm's without its own clipping; so is Lion, by the program in its paper."""
    initial = draw_weights({"conv.weight": (4, 3, 2, 2), "conv.bias": (4,), "fc.weight": (5, 7), "fc.bias": (5,)})
    size = len(flat(initial))
    # Norms from 0.2 to 2.6: some steps are clipped, some are not.
    scales = torch.tensor([0.2 + 0.4 * (step * 5 % 7) for step in range(STEPS)]).reshape(-1, 1)
    gradients = scales * (0.08 * torch.randn(STEPS, size) + 0.06 * torch.randn(size))
    write_cases("updates.safetensors", UPDATES, initial, gradients, {})


def averages():
    """Weights after each of 50 steps (float32), and the averages then (float64): `ema` is updated at every step, `swa` at
    the ends of epochs from the fourth on; it is zeros before."""
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    net, doubles = nn.Linear(40, 1, bias=False).float(), nn.Linear(40, 1, bias=False).double()
    ema, swa = AveragedModel(doubles, multi_avg_fn=get_ema_multi_avg_fn(0.9)), AveragedModel(doubles)
    optimizer = SGD(net.parameters(), lr=0.05, momentum=0.9)
    rows = {"weights": [], "ema": [], "swa": []}
    for step in range(50):
        x = torch.randn(16, 40)
        optimizer.zero_grad()
        ((net(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            doubles.weight.copy_(net.weight)
        ema.update_parameters(doubles)
        if (step + 1) % EPOCH == 0 and (step + 1) // EPOCH >= 4:
            swa.update_parameters(doubles)
        rows["weights"].append(net.weight.detach().clone()[0])
        rows["ema"].append(ema.module.weight.detach().clone()[0])
        rows["swa"].append(swa.module.weight.detach().clone()[0] if swa.n_averaged > 0 else torch.zeros(40).double())
    write_safetensors("averages.safetensors", {name: torch.stack(values) for name, values in rows.items()})


# The seed of each.
FILES = {
    layers: 20261122, batch_norm: 20261122, training: 20260108, losses: 20261123, optimizers: 20261122,
    updates: 20261123, averages: 11, state_dict: 20261122, python: 0
}


def main():
    torch.set_num_threads(1)
    for make, seed in FILES.items():
        if make.__name__ in sys.argv[1:]:
            torch.manual_seed(seed)
            make()
    unknown = set(sys.argv[1:]) - {make.__name__ for make in FILES}
    if unknown:
        sys.exit(f"error: no file is called {', '.join(sorted(unknown))} (try --help)")


if __name__ == "__main__":
    main()
