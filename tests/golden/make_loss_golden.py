#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes losses.safetensors: 50 steps of PyTorch in double under each loss, for
tests/trainer/training/training_loss_test.cpp.

Run with any Python that has PyTorch (1.13 or later):
    python3 tests/golden/make_loss_golden.py
A linear layer is trained by plain SGD on samples of classes that are not equally frequent. In the file: samples and labels,
the samples of each step, their second labels with the shares of those, the weights before the first one, and for each loss
the batches' losses and the weights after the last step. Losses whose names begin with "mixed" have both labels in their
targets, and "several_labels" the rows of label_sets. The test has the same cases by the same names.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn.functional as F

from golden_file import write_safetensors

SAMPLES, FEATURES, CLASSES, STEPS, BATCH, RATE = 96, 7, 5, 50, 20, 0.2
WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.25], dtype=torch.float64)


def smoothed(labels, smoothing):
    return F.one_hot(labels, CLASSES).double() * (1 - smoothing) + smoothing / CLASSES


def losses(labels):
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
    """Likewise, of targets that are probabilities."""
    return {
        "mixed": lambda z, y: F.cross_entropy(z, y),
        "mixed_smoothed": lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1),
        "mixed_weights": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS),
        "mixed_both": lambda z, y: F.cross_entropy(z, y, weight=WEIGHTS, label_smoothing=0.3),
    }


def train(criterion, samples, targets, batches, initial):
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


def main():
    torch.manual_seed(20261123)
    samples = torch.randn(SAMPLES, FEATURES)
    labels = torch.multinomial(torch.tensor([0.4, 0.1, 0.25, 0.2, 0.05]), SAMPLES, replacement=True)
    labels[:CLASSES] = torch.arange(CLASSES)
    initial = torch.randn(CLASSES, FEATURES, dtype=torch.float64) * 0.3
    epochs = -(-STEPS // -(-SAMPLES // BATCH))
    batches = [batch for _ in range(epochs) for batch in torch.randperm(SAMPLES).split(BATCH)][:STEPS]
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
    cases = {**{name: (criterion, hard) for name, criterion in losses(labels).items()},
             **{name: (criterion, soft) for name, criterion in mixed_losses().items()}}
    sets = torch.rand(SAMPLES, CLASSES) < 0.3
    tensors["label_sets"] = sets.to(torch.uint8)
    cases["several_labels"] = (F.binary_cross_entropy_with_logits, [sets[batch].double() for batch in batches])
    for name, (criterion, targets) in cases.items():
        values, weight = train(criterion, samples, targets, batches, initial)
        print(f"{name}: {values[0]:.4f} -> {values[-1]:.4f}")
        tensors[f"{name}.losses"], tensors[f"{name}.final"] = values, weight
    write_safetensors("losses.safetensors", tensors)


if __name__ == "__main__":
    main()
