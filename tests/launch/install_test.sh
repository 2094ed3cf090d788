#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# cmake --install: what is installed works, also after it was moved, and finds what is its own.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
skip_without cmake ldd
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
build=$(dirname "$program")
mpi=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
training=(data.set=synthetic data.train_samples=400 data.test_samples=100 data.global_batch=128 train.epochs=1 train.max_steps=2
  parallel.device=cpu parallel.backend=thread run.dir=run run.checkpoint_every_steps=0)

install_to() {
  local to=$1
  shift
  expect_exit 0 cmake --install "$build" --prefix "$to" "$@"
}

# train_with PROGRAM FOLDER [KEY=VALUE...]: the last line of a short run in an empty environment.
train_with() {
  local its_program=$1 its_folder=$2
  shift 2
  expect_exit 0 env -i PATH=/usr/bin:/bin HOME="$PWD" "${mpi[@]}" "$its_program" train "$its_folder/jobs/mnist.yaml" "${training[@]}" "$@"
  rm -rf run
  tail -n 1 <<<"$output"
}

Installed_program_trains_the_same_after_it_was_moved() {
  install_to "$PWD/first place"
  mv "first place" "another place"
  expect_equal "$(train_with "$PWD/another place/bin/lockstep" "$PWD/another place/share/lockstep")" \
    "$(train_with "$program" "$repo/launch")"
}

Installed_models_are_those_that_are_found() {
  install_to "$PWD/it"
  cp it/share/lockstep/models/linear.yaml it/share/lockstep/models/only_installed.yaml
  expect_exit 0 it/bin/lockstep validate it/share/lockstep/jobs/mnist.yaml data.set=synthetic model=only_installed
  sed -i 's/name: fc/name: changed/' it/share/lockstep/models/linear.yaml
  expect_exit 0 it/bin/lockstep validate it/share/lockstep/jobs/mnist.yaml data.set=synthetic model=linear
  expect_contains "$output" changed
}

Installed_job_is_found_by_its_name() {
  install_to "$PWD/it"
  sed -i 's/global_batch: [0-9]*/global_batch: 96/' it/share/lockstep/jobs/mnist.yaml
  expect_exit 0 it/bin/lockstep validate mnist data.set=synthetic
  expect_contains "$output" "global_batch: 96"
  LOCKSTEP_DATA='' expect_exit 66 it/bin/lockstep train mnist run.dir=run
  expect_contains "$output" "fetch it with: lockstep-get-data mnist"
  mkdir -p damaged/mnist && touch damaged/mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte
  expect_exit 65 it/bin/lockstep train mnist run.dir=run data.root=damaged
  expect_contains "$output" "with lockstep-get-data"
}

Installed_data_are_fetched_as_in_a_clone() {
  install_to "$PWD/it"
  mkdir -p mirror/mnist
  LOCKSTEP_MIRRORS="file://$PWD/mirror" LOCKSTEP_MIRRORS_ONLY=1 LOCKSTEP_DATA='' expect_exit 66 it/bin/lockstep-get-data mnist --root here
  expect_contains "$output" "lockstep-get-data: "
  expect_lacks "$output" "No such file"
  expect_contains "$(it/bin/lockstep-get-data --help)" "launch/get-data SET"
}

What_is_packed_is_installed_below_destdir() {
  DESTDIR=$PWD/root expect_exit 0 cmake --install "$build" --prefix /usr
  expect_exit 0 root/usr/bin/lockstep --version --verbose
  expect_contains "$output" "$PWD/root/usr/share/lockstep/models"
  expect_exit 0 root/usr/bin/lockstep-get-data --help
  expect_file root/usr/share/doc/lockstep/CHANGELOG.md
}

Installing_again_replaces_what_is_there() {
  install_to "$PWD/it"
  echo broken >it/share/lockstep/models/net.yaml
  touch it/share/lockstep/models/mine.yaml
  install_to "$PWD/it"
  expect_same_file it/share/lockstep/models/net.yaml "$repo/models/net.yaml"
  expect_file it/share/lockstep/models/mine.yaml
}

Components_are_installed_by_themselves() {
  install_to "$PWD/it" --component program
  expect_file it/bin/lockstep
  expect_no_file it/share
  expect_no_file it/lib/libfmt.so.9
}

Libraries_on_demand_are_the_ones_that_are_loaded() {
  install_to "$PWD/it"
  install_to "$PWD/it" --component libraries
  expect_contains "$(ldd it/bin/lockstep | grep libyaml-cpp)" "$PWD/it/"
  expect_lacks "$(ls it/lib)" libc.so
}

run_tests "$@"
