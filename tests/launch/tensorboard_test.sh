#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# TensorBoard's own reader finds in event files what metrics.jsonl has, each step once, also after a resume.
# $LOCKSTEP_PYTHON, or a virtual environment in build/tensorboard-python, or python3 has what it takes:
#   python3 -m venv build/tensorboard-python && build/tensorboard-python/bin/pip install tensorboard
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
export PYTHONDONTWRITEBYTECODE=1
job=("$repo/launch/jobs/mnist.yaml" parallel.device=cpu data.set=synthetic data.train_samples=640 data.test_samples=200
  data.global_batch=128 run.log_every_steps=2 run.keep.last=9 run.checkpoint_every_steps=4 run.report=off)
[ -x "$program" ] || skip "$program is not built"
help=$("$program" train "${job[@]}" run.tensorboard=maybe run.dir=/nowhere 2>&1)
expect_contains "$help" run.tensorboard

train() { expect_exit 0 "$program" train "${job[@]}" run.tensorboard=true run.dir=run "$@"; }

# expect_equal_series FOLDER METRICS
expect_equal_series() { expect_exit 0 "$python" "$repo/tests/trainer/run/compare_event_files.py" "$@" && echo "$output"; }

TensorBoard_reads_what_metrics_have_also_behind_a_resume_from_an_earlier_step() {
  find_python tensorboard tensorboard
  train train.epochs=2
  expect_equal_series run run/metrics.jsonl
  train train.epochs=3 run.resume=run@step:8
  expect_equal "$(find run -maxdepth 1 -name '*tfevents*' | wc -l)" 2
  expect_equal_series run run/metrics.jsonl
  expect_exit 0 "$program" report run --format tensorboard -o boards
  expect_equal_series boards/run run/metrics.jsonl
  expect_says 2 "--force replaces it" "$program" report run --format tensorboard -o boards
}

run_tests "$@"
