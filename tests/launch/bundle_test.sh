#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/bundle: one bundle of this build, made once, and what it can do elsewhere.
# shellcheck disable=SC2016  # inner shells expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
skip_without ctest mpirun ompi_info strip
build=$(dirname "${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}")
[ -x "$build/lockstep" ] || skip "no $build/lockstep: launch/build release makes it"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mpi=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none)

make_bundle() { "$repo/launch/bundle" --build "$build" "$@"; }

# bare_root FOLDER TOOL...: a root directory with a C library, a few tools and the bundle, and not a file more.
bare_root() {
  local root=$1 tool file
  shift
  mkdir -p "$root"/{bin,dev,proc,sys,tmp}
  for tool in "$@"; do
    cp "$(readlink -f "$(command -v "$tool")")" "$root/bin/$tool"
    for file in $(ldd "$root/bin/$tool" | grep -o '/[^ ]*'); do mkdir -p "$root${file%/*}" && cp -L "$file" "$root$file"; done
  done
  for file in $(ldd "$made/bundle/libexec/lockstep" | grep -oE '/[^ ]*/(libc|libm|libpthread|libdl|librt)\.so[^ ]*'); do cp -L "$file" "$root${file%/*}/"; done
  cp -r "$made/bundle" "$root/bundle"
}

# in_root FOLDER COMMAND...: in name spaces of our own, where an ordinary user may do it, too.
in_root() {
  local root=$1
  shift
  unshare --map-root-user --mount --pid --fork bash -c '
    root=$1 && shift
    mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" && mount -t proc proc "$root/proc" && exec chroot "$root" "$@"' \
    in_root "$root" "$@"
}

# A machine with a GPU gets the archive, the tree and build/nccl, which takes 5.9 MiB where it does not lie here.
Bundle_travels_with_the_tree_and_nccl_in_60_mebibytes() {
  local archive tree nccl=6144 sum
  [ -s "$made/bundle.tar.gz" ] || fail "--archive made none"
  archive=$(du -k "$made/bundle.tar.gz" | cut -f 1)
  tree=$(find "$repo" \( -path "$repo/.git" -o -path "$repo/build" -o -path "$repo/runs" -o -path "$repo/.cache" \) -prune -o -type f -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) }')
  [ ! -f "$repo/build/nccl/libnccl.so.2" ] || nccl=$(du -Lk "$repo/build/nccl/libnccl.so.2" | cut -f 1)
  sum=$((archive + tree + nccl))
  echo "  $archive KiB archive, $tree KiB tree, $nccl KiB NCCL: $sum KiB"
  if [ "$archive" -lt 1024 ] || [ "$tree" -lt 1024 ]; then fail "an archive of $archive KiB and a tree of $tree KiB"; fi
  [ "$sum" -lt 61440 ] || fail "$sum KiB: the archive $archive, the tree $tree, NCCL $nccl"
}

Bundle_holds_the_plugins_of_its_build_and_says_so() {
  expect_equal "$(find "$made/bundle/libexec" -name '*.so' -printf '%f\n' | sort | xargs)" "$(plugins_of "$build")"
  expect_contains "$(cat "$made/said")" "a program $(in_cache LOCKSTEP_CUDA_SUMMARY "$build")"
  expect_nccl_found "$build" "$made/bundle/libexec"
}

Bundle_without_a_plugin_that_was_found_is_refused() {
  pretend_build build "$build" lockstep_nccl "with CUDA 13.0, NCCL 2.28.9"
  expect_says 66 "lockstep_nccl.so is not built: cmake --build $PWD/build --target lockstep_product" "$repo/launch/bundle" --build build out
  expect_says 66 "no program $PWD/no/such/lockstep" "$repo/launch/bundle" --build no/such out
  expect_says 66 "no MNIST files in $PWD/no/such" "$repo/launch/bundle" --build build --data no/such out
  expect_says 2 "--build needs a folder" "$repo/launch/bundle" --build '' out
  expect_equal "$(echo out*)" "out*" # nor what was staged
}

Bundle_can_be_read_by_all_and_says_what_it_is() {
  expect_equal "$(stat -c %a "$made/bundle")" 755
  expect_equal "$(cat "$made/bundle/VERSION")" "$("$build/lockstep" --version)"
  expect_contains "$(cat "$made/said")" "==> making a bundle of $build"
  expect_contains "$(cat "$made/said")" "    $(du -sh "$made/bundle" | cut -f 1), trained on two ranks, loaded nothing else: $made/bundle"
  expect_contains "$(cat "$made/said")" "    $(du -h "$made/bundle.tar.gz" | cut -f 1): $made/bundle.tar.gz"
}

Bundle_holds_its_license_and_the_files_that_its_tests_read() {
  local file named
  for file in arithmetic/run arithmetic/hashes.txt bench/{idx,torch_ddp,torch_step}.py gpu/networks.sh; do expect_same_file "$made/bundle/tests/$file" "$repo/tests/$file"; done
  expect_same_file "$made/bundle/LICENSE" "$repo/LICENSE"
  [[ $(in_cache LOCKSTEP_CUDA_SUMMARY "$build") == with* ]] || return 0  # tests of GPUs are all that a bundle has
  named=$(grep -ahoE 'tests/golden/[^[:cntrl:]]*\.safetensors' "$made"/bundle/libexec/*_test | sort -u)
  expect_contains "$named" tests/golden/layers.safetensors
  for file in $named; do expect_same_file "$made/bundle/$file" "$repo/$file"; done
}

Bundle_trains_in_another_place_with_an_empty_environment_to_the_published_weights() {
  cp -r "$made/bundle" "a place"
  trained_by() {
    expect_says 0 "the published hash: yes" env -i PATH=/usr/bin:/bin HOME="$PWD" "${mpi[@]}" "$@" \
      train "a place/launch/jobs/data-parallel-tutorial.yaml" parallel.device=cpu run.dir="run-$#"
  }
  trained_by "a place/bin/lockstep"
  trained_by "a place/bin/mpirun" -np 2 --bind-to none "a place/bin/lockstep"
}

Bundle_trains_where_there_is_only_a_c_library() {
  bare_root "$PWD/root" sh env readlink dirname basename
  if ! in_root "$PWD/root" /bin/sh -c : 2>said; then
    skip "no name spaces of our own here: $(xargs <said)"
  fi
  expect_says 0 "the published hash: yes" in_root "$PWD/root" /bin/env -i PATH=/bin HOME=/tmp "${mpi[@]}" \
    /bundle/bin/mpirun -np 2 --bind-to none -wdir /tmp /bundle/bin/lockstep train /bundle/launch/jobs/data-parallel-tutorial.yaml parallel.device=cpu run.dir=run
}

Bundle_takes_the_benchmarks_of_kernels_along() {
  if [ ! -x "$build/kernels_bench" ]; then
    expect_contains "$(cat "$made/said")" "without kernels_bench, which times kernels: install libbenchmark-dev"
    skip "kernels_bench is not built"
  fi
  cp -r "$made/bundle" "a place"
  expect_says 0 "cpu/relu" env -i PATH=/usr/bin:/bin HOME="$PWD" "a place/bin/kernels_bench" --benchmark_filter=^cpu/relu --benchmark_min_time=0.001
}

# With the data, without the GPU suite, and of a build without NCCL, which it says.
Bundle_replaces_a_bundle_and_nothing_else() {
  local temporary="$PWD/it's a \$(touch broken) \"folder\"" name
  cp -r "$made/bundle" out && touch out/old
  mkdir "$temporary" out.partial && touch out.partial/precious
  mkdir -p data/mnist
  for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do echo "$name" >"data/mnist/$name-ubyte"; done
  pretend_build build "$build" "" "with CUDA 13.0, without NCCL"
  TMPDIR=$temporary expect_says 0 "a program with CUDA 13.0, without NCCL" "$repo/launch/bundle" --build build --data data --without-tests out
  expect_equal "$(find out -name 'lockstep*.so')$(find out/tests -type f)$(find out -name '*_test')" ""
  expect_no_file out/old
  expect_file out.partial/precious
  expect_no_file broken
  expect_equal "$(ls -A "$temporary")" ""
  expect_same_file out/data/mnist/t10k-labels-idx1-ubyte data/mnist/t10k-labels-idx1-ubyte
  LOCKSTEP_DATA="" expect_says 65 "$PWD/out/data/mnist" out/bin/lockstep train out/launch/jobs/mnist.yaml run.dir=run
}

make_bundle "$made/bundle" --archive | tee "$made/said" || exit 1
run_tests "$@"
