#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes averages.safetensors: averages of weights that torch.optim.swa_utils keeps, in double, for
tests/trainer/training/weight_averages_test.cpp.

Run with any Python that has PyTorch (2.0 or later):
    python3 tests/golden/make_average_golden.py
In the file: the weights after each of STEPS steps of a training (float32), and after each of them the averages (float64):
`ema` is updated at every step, `swa` at the ends of epochs from FROM_EPOCH on; it is zeros before.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from golden_file import write_safetensors

STEPS, STEPS_PER_EPOCH, FROM_EPOCH, DECAY, PARAMETERS = 50, 5, 4, 0.9, 40

torch.manual_seed(11)
net = torch.nn.Linear(PARAMETERS, 1, bias=False).float()
doubles = torch.nn.Linear(PARAMETERS, 1, bias=False).double()
ema = AveragedModel(doubles, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
swa = AveragedModel(doubles)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
rows = {"weights": [], "ema": [], "swa": []}
for step in range(STEPS):
    x = torch.randn(16, PARAMETERS)
    optimizer.zero_grad()
    ((net(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        doubles.weight.copy_(net.weight)
    ema.update_parameters(doubles)
    if (step + 1) % STEPS_PER_EPOCH == 0 and (step + 1) // STEPS_PER_EPOCH >= FROM_EPOCH:
        swa.update_parameters(doubles)
    rows["weights"].append(net.weight.detach().clone()[0])
    rows["ema"].append(ema.module.weight.detach().clone()[0])
    rows["swa"].append(swa.module.weight.detach().clone()[0] if swa.n_averaged > 0 else torch.zeros(PARAMETERS).double())
write_safetensors("averages.safetensors", {name: torch.stack(values) for name, values in rows.items()})
