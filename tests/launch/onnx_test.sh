#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Exported networks computed by onnxruntime, and networks trained by PyTorch computed here.
# $LOCKSTEP_PYTHON, or a virtual environment in build/onnx-python, or python3 has what it takes:
#   python3 -m venv build/onnx-python && build/onnx-python/bin/pip install numpy onnx onnxruntime safetensors
#   build/onnx-python/bin/pip install torch onnxscript        # gigabytes; without, what comes from PyTorch is skipped
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
logits=$(dirname "$program")/lockstep_logits
tools=$repo/tests/trainer/onnx
job=$repo/launch/jobs/mnist.yaml
mnist=${LOCKSTEP_DATA:-/nowhere}/mnist
made=(data.set=synthetic data.train_samples=640 data.test_samples=200)
export PYTHONDONTWRITEBYTECODE=1

# train_briefly RUN KEY=VALUE...
train_briefly() {
  expect_exit 0 "$program" train "$job" parallel.device=cpu parallel.backend=thread run.dir="$1" run.checkpoint_every_steps=0 "${@:2}"
}

# expect_same_logits MODEL KEY=VALUE...: of a run of a few steps, on its whole test set.
expect_same_logits() {
  train_briefly "run-$1" train.max_steps=8 "${@:2}"
  expect_exit 0 "$program" export "run-$1" --onnx "$1.onnx"
  expect_exit 0 "$logits" "run-$1" "$1.safetensors"
  expect_exit 0 "$python" "$tools/compare.py" "$1.onnx" "$1.safetensors"
  echo "$output"
}

Onnxruntime_computes_what_is_computed_here() {
  find_python onnx numpy onnx onnxruntime safetensors
  local model
  for model in net lenet mlp linear resnet8 resnet20; do expect_same_logits $model model=$model "${made[@]}"; done
  expect_same_logits all_layers model="$tools/all_layers.yaml" "${made[@]}"
}

All_digits_get_the_same_class() {
  find_python onnx numpy onnx onnxruntime safetensors
  [ -d "$mnist" ] || skip "no LOCKSTEP_DATA with mnist"
  local model
  for model in net lenet; do expect_same_logits $model model=$model; done
}

# make_pictures SIZE TRAINING TEST CLASSES: so many pictures of 3 x SIZE x SIZE, in the current directory.
make_pictures() {
  "$python" - "$@" <<'END'
import sys
import numpy as np
size, training, test, classes = map(int, sys.argv[1:])
random = np.random.default_rng(1)
for name, samples in (("train", training), ("t10k", test)):
    for kind, array in (("images-idx4", random.integers(0, 256, (samples, size, size, 3))), ("labels-idx1", np.arange(samples) % classes)):
        with open(f"{name}-{kind}-ubyte", "wb") as file:
            file.write(bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape))
            file.write(array.astype(np.uint8).tobytes())
END
}

Colours_are_normalised_channel_by_channel() {
  find_python onnx numpy onnx onnxruntime safetensors
  make_pictures 32 256 100 10
  expect_same_logits resnet8 model=resnet8 data.set=idx data.root="$PWD" data.mean='[0.4914, 0.4822, 0.4465]' data.std='[0.25, 0.5, 0.75]'
}

# import_equals MODEL STEPS KEY=VALUE...: PyTorch and Lockstep get as many samples right with the weights of both files.
import_equals() {
  local right file
  train_briefly data train.max_steps=1 model=linear "${@:3}"
  expect_exit 0 "$logits" data data.safetensors
  right=$("$python" "$tools/torch_models.py" "$1" data.safetensors "$2" trained 2>/dev/null | tail -n 1)
  expect_contains "$right" " of "
  for file in trained.safetensors trained.onnx; do
    expect_exit 0 "$program" import $file "$job" "from-$file" model="$1" parallel.device=cpu "${@:3}"
    expect_contains "${output//,/}" "($right)"
    echo "$output"
  done
  expect_exit 0 "$program" eval from-trained.onnx --device cpu
  expect_contains "${output//,/}" "($right)"
}

Networks_that_PyTorch_trained_are_as_accurate_here() {
  find_python onnx torch safetensors onnx onnxscript
  import_equals resnet8 60 "${made[@]}"
}

Net_that_PyTorch_trained_is_as_accurate_here_on_all_digits() {
  find_python onnx torch safetensors onnx onnxscript
  [ -d "$mnist" ] || skip "no LOCKSTEP_DATA with mnist"
  import_equals net 150
}

Torchvisions_networks_compute_the_same_logits() {
  find_python onnx numpy torch safetensors onnx onnxscript
  make_pictures 224 2 2 2
  seq 200 >classes.txt
  local model file pictures=(data.set=idx data.root="$PWD" 'data.mean=[0.485, 0.456, 0.406]' 'data.std=[0.229, 0.224, 0.225]')
  for model in resnet18 resnet50 mobilenet_v2; do
    expect_exit 0 "$python" "$tools/torchvision_models.py" make $model 224 $model
    for file in $model.safetensors $model.onnx; do
      expect_exit 0 "$program" import "$file" "$job" "from-$file" model=$model parallel.device=cpu "${pictures[@]}"
      expect_exit 0 "$logits" "from-$file" "$file.logits"
      expect_exit 0 "$python" "$tools/torchvision_models.py" compare $model "$file.logits" $model
      echo "$output"
    done
  done
}

run_tests "$@"
