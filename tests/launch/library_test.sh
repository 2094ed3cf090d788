#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The library as a stranger gets it: installed under a prefix, found with find_package, the examples built against it and run on
# 1, 2 and 3 ranks. With LOCKSTEP_DATA=FOLDER that has MNIST, the first one must come to the published hash.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
skip_without cmake ldd mpirun pkg-config python3
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
build=$(dirname "$program")
[ -f "$build/trainer/library/liblockstep.a" ] || skip "no liblockstep.a in $build: launch/build release lockstep_archive"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mpi_settings

# need_examples: installed and built once; the programs are in $place/built.
need_examples() {
  [ ! -d "$place/built" ] || return 0
  expect_exit 0 cmake --install "$build" --prefix "$place/it was here" --component development
  mv "$place/it was here" "$place/a prefix" # it may be moved
  cp -r "$repo/examples" "$place/sources"
  expect_exit 0 cmake -S "$place/sources" -B "$place/built" -DCMAKE_PREFIX_PATH="$place/a prefix"
  expect_exit 0 cmake --build "$place/built" --parallel 2
}

# need_digits: MNIST's four files with 700 and 100 samples, in $place/data/mnist.
need_digits() {
  [ ! -d "$place/data/mnist" ] || return 0
  mkdir -p "$place/data/mnist"
  python3 - "$place/data/mnist" <<'END'
import random, struct, sys
draw = random.Random(1)
for half, samples in (("train", 700), ("t10k", 100)):
    labels = bytes(i % 10 for i in range(samples))
    images = b"".join(bytes(min(255, draw.randrange(90) + (160 if row // 3 == label else 0)) for row in range(28) for _ in range(28)) for label in labels)
    open(f"{sys.argv[1]}/{half}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, samples, 28, 28) + images)
    open(f"{sys.argv[1]}/{half}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, samples) + labels)
END
}

# last_lines COMMAND...: what it says last without mpirun and on 2 and 3 ranks, each line once. All of the first is in ./alone.
last_lines() {
  local said
  "$@" >alone
  for said in "$(cat alone)" "$(mpirun -np 2 "$@")" "$(mpirun -np 3 "$@")"; do tail -n 1 <<<"$said"; done | sort -u
}

# A build of the library alone does without the packages of the program.
Library_is_configured_without_the_packages_of_the_program() {
  local package hidden=()
  while read -r package; do hidden+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done \
    < <(sed -n 's/^find_package(\([A-Za-z0-9]*\) .*/\1/p' "$repo/launch/program-packages.cmake")
  [ ${#hidden[@]} -ge 6 ] || fail "launch/program-packages.cmake names ${#hidden[@]} packages"
  expect_exit 0 cmake -S "$repo" -B "$place/alone" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_PROGRAM=OFF "${hidden[@]}"
  expect_says 0 "lockstep_archive" cmake --build "$place/alone" --target help
  expect_lacks "$output" "lockstep_program"
}

First_example_trains_to_the_weights_of_the_program() {
  need_examples && need_digits
  export LOCKSTEP_DATA=$place/data
  expect_exit 0 "$program" train "$repo/launch/jobs/mnist.yaml" train.epochs=2 parallel.device=cpu run.dir=run run.checkpoint_every_steps=0
  expect_equal "$(last_lines "$place/built/mnist" 2)" "$(tail -n 1 <<<"$output")"
}

First_example_comes_to_the_published_hash() {
  [ -d "${LOCKSTEP_DATA:-}/mnist" ] || skip "no MNIST: LOCKSTEP_DATA"
  need_examples
  local published
  published=$(sed -n 's/^[^#][^ ]* 1180 \([^ ]*\) mnist.yaml .*/\1/p' "$repo/launch/jobs/hashes.txt")
  expect_equal "$(last_lines "$place/built/mnist")" "weights sha256 $published"
}

Own_arrays_layer_and_loss_train_to_the_same_bits() {
  need_examples
  local said
  said=$(last_lines "$place/built/own_arrays")
  expect_equal "$(wc -l <<<"$said")" 1
  expect_contains "$said" "weights sha256 "
  expect_contains "$(cat alone)" "100.0 % of the test points"
}

Exact_sums_of_own_buffers_have_the_same_bits() {
  need_examples
  expect_equal "$(last_lines "$place/built/all_reduce" | wc -l)" 1
  expect_contains "$(cat alone)" "y = 2.0"
}

Observer_draws_the_same_curve_on_any_threads() {
  need_examples
  local ranks
  for ranks in 1 2 3; do "$place/built/curve" "$ranks" >"curve$ranks"; done
  expect_same_file curve1 curve2
  expect_same_file curve1 curve3
  expect_contains "$(cat curve1)" "#"
}

Example_on_gpus_has_the_weights_of_the_cpu() {
  need_examples
  local cpu
  cpu=$("$place/built/on_gpus" cpu | tail -n 1)
  expect_contains "$cpu" "weights sha256 "
  expect_equal "$(last_lines "$place/built/on_gpus" emulated)" "$cpu"
  expect_equal "$("$place/built/on_gpus" | tail -n 1)" "$cpu" # auto
  expect_says 2 "'gpu' is not a device: auto, cpu, cuda, cuda:N or emulated" "$place/built/on_gpus" gpu
}

Programs_link_no_library_of_pictures() {
  need_examples
  local library libraries
  libraries=$(ldd "$place/built/mnist")
  for library in jpeg png webp boost protobuf cuda nccl nvidia; do expect_lacks "$libraries" "lib$library"; done
  expect_contains "$libraries" libmpi
}

# compiled NAME: NAME.cpp, by pkg-config alone, without CMake.
compiled() {
  local flags
  [ -e prefix ] || ln -s "$place/a prefix" prefix # pkg-config gives folders without quotes
  flags=$(PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig pkg-config --cflags --libs lockstep) || fail "pkg-config does not find it"
  # shellcheck disable=SC2086  # words
  expect_exit 0 c++ -std=c++20 "$1.cpp" -o "$1" $flags
}

Library_goes_on_where_the_program_stopped_and_saves_what_it_reads() {
  need_examples && need_digits
  export LOCKSTEP_DATA=$place/data
  cat >go_on.cpp <<'END'
#include <lockstep/lockstep.hpp>
#include <cstdio>
int main(int argc, char** argv) {
  lockstep::Mpi mpi(argc, argv);
  const auto data = lockstep::load_dataset({.set = "mnist"});
  const auto net = lockstep::Network::load("net", data.train.shape(), data.train.classes());
  lockstep::Trainer trainer(net, data.train, mpi.world(),
                            {.global_batch = 512, .optimizer = lockstep::sgd(0.08, 0.9, lockstep::nesterov)});
  trainer.load(argv[1]);
  trainer.epoch();
  std::printf("%s\nweights sha256 %s\n", trainer.save("saved").c_str(), trainer.weights_sha256().c_str());
}
END
  compiled go_on
  expect_exit 0 "$program" train "$repo/launch/jobs/mnist.yaml" train.epochs=2 parallel.device=cpu run.dir=run run.checkpoint_every_steps=1
  local trained=${output##*$'\n'} saved
  expect_exit 0 ./go_on run/checkpoints/step-00000003
  expect_equal "${output##*$'\n'}" "$trained"
  saved=${output%%$'\n'*}
  expect_equal "$saved" saved/checkpoints/step-00000004
  expect_exit 0 "$program" verify "$saved"
  expect_says 0 conv1.weight "$program" inspect "$saved"
  expect_says 0 "${trained##* }" "$program" hash "$saved"
  expect_exit 65 ./go_on run/checkpoints/step-00000003/model.safetensors # what is no directory
}

# The sources and their build folder are elsewhere, as on a machine that has the package alone.
Networks_and_sets_are_found_without_the_sources() {
  need_examples && need_digits
  unshare -m true 2>/dev/null || skip "no namespace of its own for this test"
  cp "$place/built/mnist" here
  LOCKSTEP_DATA=$place/data expect_exit 0 unshare -m sh -c "mount -t tmpfs none '$repo/models' && ./here 1"
}

Each_public_header_compiles_alone() {
  need_examples
  local header
  for header in "$place/a prefix/include/lockstep"/*.hpp; do
    echo "#include <lockstep/${header##*/}>" >one.cpp
    expect_exit 0 c++ -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only "-I$place/a prefix/include" one.cpp
    expect_lacks "$(grep '#include' "$header")" '"'
  done
}

Another_minor_version_is_not_taken() {
  need_examples
  sed 's/find_package(lockstep/& 0.2/' "$repo/examples/CMakeLists.txt" >CMakeLists.txt
  cp "$repo/examples/"*.cpp .
  expect_says 1 "compatible with requested version" cmake -S . -B built -DCMAKE_PREFIX_PATH="$place/a prefix"
}

# An error of all ranks is said once, and MPI ends in good order.
Error_of_all_ranks_is_said_once() {
  need_examples
  expect_exit 2 mpirun -np 5 "$place/built/own_arrays"
  expect_equal "$(grep -c '^lockstep: ' <<<"$output")" 1
  expect_contains "$output" "in grains of 64 has work for 4 ranks at most, and 5 were started; add grain=48, or add global_batch=320"
  expect_lacks "$output" MPI_ABORT
  # mpirun ends with the first code above 0 that it sees.
  # shellcheck disable=SC2016  # sh expands it
  expect_exit 0 mpirun -np 5 sh -c '"$0" || code=$?; echo "ended with ${code:-0}"' "$place/built/own_arrays"
  expect_equal "$(grep '^ended' <<<"$output" | sort)" "$(printf 'ended with %s\n' 0 0 0 0 2)"
}

Error_of_one_rank_ends_all_with_its_code() {
  need_examples
  cat >one.cpp <<'END'
#include <lockstep/lockstep.hpp>
#include <stdexcept>
int main(int argc, char** argv) {
  lockstep::Mpi mpi(argc, argv);
  if (mpi.world().rank() == 1) argc > 1 ? throw lockstep::IoError("a disk") : throw std::runtime_error("its own");
  mpi.world().barrier();
}
END
  compiled one
  expect_exit 74 mpirun -np 3 ./one disk
  expect_contains "$output" "lockstep: rank 1 on $(hostname): a disk"
  expect_exit 70 mpirun -np 3 ./one
  expect_contains "$output" "lockstep: rank 1 on $(hostname): its own"
  expect_lacks "$output" "internal error"
}

# MPI_Finalize itself waits for ever.
Rank_that_does_not_come_to_the_end_is_named() {
  need_examples
  cat >late.cpp <<'END'
#include <lockstep/lockstep.hpp>
#include <unistd.h>
int main(int argc, char** argv) {
  lockstep::Mpi mpi(argc, argv, std::chrono::seconds(3));
  while (mpi.world().rank() == 1) pause();
}
END
  compiled late
  expect_exit 71 timeout 60 mpirun -np 2 ./late
  expect_contains "$output" "waited 3 s for the other ranks in MPI_Finalize: rank 1 (pid "
}

run_tests "$@"
