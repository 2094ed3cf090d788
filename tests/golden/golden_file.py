# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""What the scripts of this folder share: the files that tests read, and a training that is written down."""
import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

DTYPES = {
    torch.float32: "F32", torch.float64: "F64", torch.uint8: "U8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64"
}


def write_safetensors(name, tensors):
    """Eight bytes of header length, JSON, then the bytes of the tensors: see huggingface/safetensors, "Format"."""
    header, data = {"__metadata__": {"made_by": pathlib.Path(sys.argv[0]).name, "torch": torch.__version__}}, b""
    for key, tensor in tensors.items():
        numbers = tensor.detach().contiguous().numpy()
        raw = numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()
        header[key] = {
            "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(__file__).with_name(name)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes, PyTorch {torch.__version__}")


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
