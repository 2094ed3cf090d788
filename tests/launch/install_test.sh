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

# Each of them is changed, or has a name of its own, so that no other can be taken for it.
Installed_jobs_models_and_scripts_are_those_that_are_found() {
  install_to "$PWD/it"
  sed -i 's/global_batch: [0-9]*/global_batch: 96/' it/share/lockstep/jobs/mnist.yaml
  expect_says 0 "global_batch: 96" it/bin/lockstep validate mnist data.set=synthetic
  cp it/share/lockstep/models/linear.yaml it/share/lockstep/models/only_installed.yaml
  sed -i 's/name: fc/name: changed/' it/share/lockstep/models/linear.yaml
  expect_exit 0 it/bin/lockstep validate it/share/lockstep/jobs/mnist.yaml data.set=synthetic model=only_installed
  expect_says 0 changed it/bin/lockstep validate it/share/lockstep/jobs/mnist.yaml data.set=synthetic model=linear
  expect_says 0 "$PWD/it/bin/lockstep train mnist data.set=synthetic" it/bin/lockstep-run --dry-run -np 2 train mnist data.set=synthetic
  expect_exit 0 bash it/share/lockstep/launch/slurm/train.sbatch --help
}

Installed_data_are_fetched_as_in_a_clone() {
  install_to "$PWD/it"
  LOCKSTEP_DATA='' expect_says 66 "fetch it with: lockstep-get-data mnist" it/bin/lockstep train mnist run.dir=run
  mkdir -p damaged/mnist mirror/mnist && touch damaged/mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte
  expect_says 65 "with lockstep-get-data" it/bin/lockstep train mnist run.dir=run data.root=damaged
  LOCKSTEP_MIRRORS="file://$PWD/mirror" LOCKSTEP_MIRRORS_ONLY=1 LOCKSTEP_DATA='' expect_says 66 "lockstep-get-data: " \
    it/bin/lockstep-get-data mnist --root here
  expect_lacks "$output" "No such file"
  expect_contains "$(it/bin/lockstep-get-data --help)" "launch/get-data SET"
}

What_is_packed_is_installed_below_destdir() {
  DESTDIR=$PWD/root expect_exit 0 cmake --install "$build" --prefix /usr
  expect_says 0 "$PWD/root/usr/share/lockstep/models" root/usr/bin/lockstep --version --verbose
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

Installed_plugins_are_those_of_the_build_which_says_so() {
  install_to "$PWD/it"
  expect_contains "$output" "-- Installing a program $(in_cache LOCKSTEP_CUDA_SUMMARY "$build")"
  expect_equal "$(find it/lib -name 'lockstep*.so' -printf '%f\n' 2>/dev/null | sort | xargs)" "$(plugins_of "$build")"
  expect_nccl_found "$build" it/lib/lockstep
}

Installing_without_a_plugin_that_was_found_fails() {
  [ -f "$build/lockstep_nccl.so" ] || skip "a build without NCCL"
  sed "s|$build/lockstep_nccl.so|$PWD/lockstep_nccl.so|g" "$build/comm/nccl/cmake_install.cmake" >install.cmake
  expect_says 1 "lockstep_nccl.so" cmake "-DCMAKE_INSTALL_PREFIX=$PWD/it" -DCMAKE_INSTALL_COMPONENT=program -P install.cmake
}

Product_is_the_program_and_every_plugin_that_was_found() {
  skip_without ninja
  local input inputs
  inputs=$(ninja -C "$build" -t query lockstep_product)
  for input in lockstep $(plugins_of "$build"); do expect_contains "$inputs" "    $input"$'\n'; done
  [[ $(in_cache LOCKSTEP_CUDA_SUMMARY "$build") != *", NCCL "* ]] || expect_contains "$(plugins_of "$build")" lockstep_nccl.so
}

# Configured only.
Build_without_nccl_and_cudnn_says_so_and_has_no_plugin() {
  skip_without ninja
  [[ $(in_cache LOCKSTEP_CUDA_SUMMARY "$build") == with* ]] || skip "a build without CUDA"
  expect_exit 0 cmake -S "$repo" -B tree -G Ninja -DCMAKE_BUILD_TYPE=Release -DNCCL_LIBRARY=OFF -DCUDNN_LIBRARY=OFF
  expect_contains "$output" ", without cuDNN (docs/gpu.md), without NCCL, so sums of GPUs go over MPI (docs/gpu.md says how to get it)"
  expect_contains "$(in_cache LOCKSTEP_CUDA_SUMMARY tree)" ", without NCCL"
  expect_equal "$(plugins_of tree)" ""
  expect_lacks "$(ninja -C tree -t query lockstep_product)" lockstep_nccl
}

Libraries_on_demand_are_the_ones_that_are_loaded() {
  install_to "$PWD/it"
  install_to "$PWD/it" --component libraries
  expect_contains "$(ldd it/bin/lockstep | grep libyaml-cpp)" "$PWD/it/"
  expect_lacks "$(ls it/lib)" libc.so
}

run_tests "$@"
