#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/bundle, with stand-ins for the tools: wrong command lines, missing parts, what it takes along and what it asks of the tools.
# bundle_test.sh makes a real one.
# shellcheck disable=SC1090,SC2016,SC2030,SC2031,SC2034,SC2317  # the stand-ins expand their own variables; functions come from the scripts
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
export LC_ALL=C # names in one order

Bundle_refuses_what_it_cannot_make() {
  mkdir empty kept && touch kept/mine
  expect_says 2 "--data needs a folder" "$repo/launch/bundle" --data
  expect_says 2 "unknown option --frobnicate (try --help)" "$repo/launch/bundle" --frobnicate
  expect_says 2 "one folder at a time: $PWD/out or other" "$repo/launch/bundle" out --build empty other
  expect_says 2 "$PWD/kept is there and is not a bundle" "$repo/launch/bundle" --build empty kept
  expect_says 66 "no MNIST files in $PWD/empty: launch/get-data mnist" "$repo/launch/bundle" --build empty --data empty out
  expect_says 66 "no program $PWD/empty/lockstep: launch/build" "$repo/launch/bundle" --build empty out
  expect_no_file out
  mkdir -p kept/libexec && touch kept/libexec/environment.sh
  expect_says 66 "no program" "$repo/launch/bundle" --build empty kept
  expect_says 0 "also makes DIR.tar.gz" "$repo/launch/bundle" --help
  expect_file kept/mine
}

Bundle_is_of_the_release_build_and_needs_open_mpi() {
  copy_script bundle && mkdir -p tests/gpu && touch tests/gpu/list.sh
  stand_in launch/build 'echo "build $*" >>calls'
  expect_says 66 "no program $PWD/build/release/lockstep" launch/bundle
  expect_says 66 "no program $PWD/build/release/lockstep" launch/bundle --without-tests
  expect_equal "$(cat calls)" $'build release\nbuild release lockstep_product'
  expect_says 0 "Makes a folder that runs on another machine" launch/bundle -h
  stand_in b/lockstep :
  expect_says 69 "ompi_info, which says where Open MPI's plugins are, is not installed" with_tools bash dirname realpath -- launch/bundle --build b out
  stand_in ompi_info :
  expect_says 74 "cannot write to /proc: name another folder" launch/bundle /proc/out --build b
}

Bundle_tells_foreign_libraries_from_its_own_and_the_systems() {
  mkdir said
  printf '%s\n' '1: file=/b/libexec/lockstep' '1: calling init: /b/lib/liba.so' '1: calling init: /usr/lib/libc.so.6' \
    '1: calling init: /usr/lib/libz.so.1' '1: calling init: /usr/lib/libz.so.1' >said/loaded.1
  echo '2: calling init: /usr/lib/libother.so' >said/loaded.2
  foreign() { stage=/b && foreign_libraries said; }
  expect_equal "$(with_functions bundle foreign)" /usr/lib/libz.so.1
}

# A program that needs libz, libc and NCCL, and a plugin of Open MPI that needs a fabric.
make_stage() {
  mkdir -p stage/{libexec,lib,pmix/lib} plugins
  touch stage/libexec/lockstep libz.so.1 plugins/{ucx,tcp}.so
  stand_in ldd "echo not dynamic >&2; case \$1 in
      *ucx*) echo 'libucp.so.0 => /lib/libucp.so.0 (0x1)' ;;
      '') ;;
      *) printf '%s\n' 'libz.so.1 => $PWD/libz.so.1 (0x1)' 'libc.so.6 => /lib/libc.so.6 (0x2)' '/lib64/ld-linux.so.2 (0x3)' 'libnccl.so.2 => not found' \$MORE ;;
    esac"
  stand_in strip 'while [ "$1" != -o ]; do shift; done; cp "$3" "$2"'
  export MORE=''
}

Bundle_takes_the_libraries_that_other_machines_may_lack() {
  make_stage
  copy() { stage=stage with_cuda=$1 && copy_libraries; }
  expect_equal "$(with_functions bundle needs stage/libexec/lockstep 2>&1 | xargs)" "libc.so.6 /lib/libc.so.6 libnccl.so.2 not libz.so.1 $PWD/libz.so.1"
  expect_exit 0 with_functions bundle copy false
  expect_equal "$(ls stage/lib)" libz.so.1
  expect_says 69 "libnccl.so.2, which --with-cuda-libraries takes along, is not found: set LD_LIBRARY_PATH" with_functions bundle copy true
  MORE='libq.so.1 => not found'
  stand_in ldd "echo 'libcudnn.so.9 => $PWD/cuda/libcudnn.so.9 (0x1)'"
  mkdir cuda && touch cuda/{libcudnn.so.9,libcudnn_ops.so.9,libnvrtc.so.12,libnvrtc-builtins.so.12.4,libother.so.1}
  expect_exit 0 with_functions bundle copy true
  expect_equal "$(cd stage/lib && echo *)" "libcudnn.so.9 libcudnn_ops.so.9 libnvrtc-builtins.so.12.4 libnvrtc.so.12 libz.so.1"
  stand_in ldd 'echo "libq.so.1 => not found"'
  expect_says 69 "libq.so.1, which the program needs, is not found: set LD_LIBRARY_PATH" with_functions bundle copy false
}

Bundle_leaves_plugins_for_fabrics_behind() {
  make_stage
  expect_exit 0 with_functions bundle copy_plugins plugins stage/here
  expect_equal "$(ls stage/here)" tcp.so
}

Bundle_takes_the_plugins_of_a_folder_whose_name_has_a_space() {
  stand_in 'a build/lockstep' : && touch 'a build/lockstep_a.so' && mkdir -p stage/{bin,libexec}
  echo 'LOCKSTEP_PLUGINS:INTERNAL=lockstep_a' >'a build/CMakeCache.txt'
  stand_in strip 'cp "$3" "$2"'
  programs() { build='a build' stage=stage && copy_programs; }
  expect_exit 0 with_functions bundle programs
  expect_equal "$(cd stage && echo bin/* libexec/*)" "bin/lockstep libexec/lockstep libexec/lockstep_a.so"
}

# A program and two tests on GPUs, of which one is for two ranks, in a folder whose name has a space; the file of results that they name.
Bundle_takes_the_gpu_suite_along() {
  local name
  skip_without ctest
  for name in lockstep kernels_bench one_test two_test; do stand_in "a b/$name" ': tests/golden/layers.safetensors'; done
  cat >'a b/CTestTestfile.cmake' <<END
add_test(one "$PWD/a b/one_test")
add_test(two "$BASH" "-n" "2" "--bind-to" "none" "$PWD/a b/two_test")
add_test(other "$PWD/a b/lockstep")
set_tests_properties(one two PROPERTIES LABELS "gpu")
END
  stand_in strip 'cp "$3" "$2"'
  mkdir -p stage/{bin,libexec,tests/{bench,gpu,golden}}
  suite() { build='a b' stage=stage && copy_gpu_suite; }
  expect_exit 0 with_functions bundle suite
  expect_equal "$output" ""
  expect_equal "$(cat stage/tests/gpu/tests.txt)" $'one 0 one_test\ntwo 2 two_test'
  expect_equal "$(cd stage && echo bin/* libexec/*)" "$(echo {bin,libexec}/{kernels_bench,one_test,two_test})"
  expect_equal "$(ls stage/tests/golden)" layers.safetensors
  for name in gpu/run results.sh bench/torch_step.py arithmetic/run; do expect_same_file "stage/tests/$name" "$repo/tests/$name"; done
  expect_no_file stage/tests/gpu/CMakeLists.txt
  rm 'a b/two_test' && expect_says 66 "$PWD/a b/two_test is not built: launch/build" with_functions bundle suite
}

# Open MPI in mpi/, which moves with OPAL_PREFIX, and PMIx in pmix/, whose library lies behind a link.
Bundle_takes_open_mpi_and_pmix_along() {
  mkdir -p mpi/{lib/plugins,share/openmpi,etc} pmix/{lib/pmix,share/pmix} stage/{bin,libexec,pmix/{lib,share}}
  touch mpi/{lib/plugins/tcp.so,share/openmpi/help.txt,etc/mca.conf} pmix/{lib/libpmix.so.2.9,lib/pmix/gds.so,share/pmix/help.txt}
  ln -s "$PWD/pmix/lib/libpmix.so.2.9" libpmix.so.2
  stand_in mpi/orterun : && mkdir -p bin && ln -s "$PWD/mpi/orterun" bin/mpirun && stand_in orted :
  stand_in ldd "echo 'libpmix.so.2 => $PWD/libpmix.so.2 (0x1)'"
  stand_in strip 'cp "$3" "$2"'
  stand_in ompi_info '[ "$1 $3" = "--path --parsable" ] && case $2 in pkglibdir) it=lib/plugins ;; pkgdatadir) it=share/openmpi ;; sysconfdir) it=etc ;; esac
    echo "path:$2:${OPAL_PREFIX:-$PWD/mpi}/$it"'
  take() { stage=$PWD/stage && copy_open_mpi; }
  expect_exit 0 with_functions bundle take
  expect_equal "$(find stage -type f | sort | xargs)" "$(echo stage/{bin/{mpirun,orted},etc/openmpi/mca.conf,lib/plugins/tcp.so,libexec/{mpirun,orted}} \
    stage/{pmix/lib/pmix/gds.so,pmix/share/pmix/help.txt,share/openmpi/help.txt})"
  rm -r pmix/{lib/pmix,share} && expect_exit 0 with_functions bundle take
  fixed() { stage=$PWD/stage && at() { [ "$1$2" != "$fixed$stage" ] || stage=/usr; echo "$stage/$1"; } && copy_open_mpi; }
  for fixed in pkglibdir pkgdatadir; do
    expect_says 69 "this Open MPI cannot be moved: with OPAL_PREFIX=$PWD/stage it looks" with_functions bundle fixed
  done
}

Bundle_takes_texts_and_data_along() {
  stand_in b/lockstep 'echo "lockstep 1.2.3"' && mkdir -p data stage/{libexec,launch,share/lockstep/models} && touch data/{train,t10k}-{images,labels}-ubyte
  texts() { build=b stage=stage data=$1 && copy_texts; }
  expect_exit 0 with_functions bundle texts ''
  expect_no_file stage/data
  expect_exit 0 with_functions bundle texts data
  expect_equal "$(cd stage/data/mnist && echo *)" "$(cd data && echo *)"
  expect_equal "$(cat stage/VERSION)" "lockstep 1.2.3"
  expect_equal "$(cd stage/share/lockstep/models && echo *)" "$(cd "$repo/models" && echo *.yaml)"
  expect_same_file stage/libexec/environment.sh "$repo/launch/bundle-environment.sh"
  expect_same_file stage/share/lockstep/completion/lockstep.bash "$repo/launch/completion/lockstep.bash"
  for name in launch/jobs/mnist.yaml launch/lib.sh LICENSE; do expect_same_file "stage/$name" "$repo/$name"; done
  expect_same_file stage/share/lockstep/jobs/hashes.txt "$repo/launch/jobs/hashes.txt"
}

# The arguments of env, which a stand-in prints.
Bundle_is_tried_on_two_ranks_with_nothing_in_the_environment() {
  stand_in env 'printf "%s\n" "$PWD" "$@"' && mkdir folder
  try() { stage=/b && train_in_bundle "$PWD/folder"; }
  expect_exit 0 with_functions bundle try
  expect_equal "$(xargs <<<"${output//"$PWD"/.}")" "./folder -i PATH=/usr/bin:/bin HOME=./folder TMPDIR=./folder LD_DEBUG=files LD_DEBUG_OUTPUT=./folder/loaded \
OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 \
/b/bin/mpirun -np 2 --bind-to none --oversubscribe /b/bin/lockstep train /b/launch/jobs/mnist.yaml data.set=synthetic \
data.train_samples=400 data.test_samples=100 train.epochs=1 parallel.device=cpu run.dir=run run.checkpoint_every_steps=0"
}

Bundle_that_does_not_train_or_is_not_whole_is_refused() {
  mkdir run
  checked() {
    repo=$PWD stage=/b folder=.
    train_in_bundle() { echo "$hash" >run/metrics.jsonl && [ -n "$hash" ]; }
    foreign_libraries() { echo "${foreign-}"; }
    check_bundle
  }
  hash='"weights_sha256"' foreign='' expect_exit 0 with_functions bundle checked
  hash='' expect_says 70 "the bundle does not train" with_functions bundle checked
  hash=no expect_says 70 "the bundle's training wrote no weights" with_functions bundle checked
  hash='"weights_sha256"' foreign=$'/usr/liba.so\n/usr/libb.so' expect_says 70 "it loaded from this machine: /usr/liba.so /usr/libb.so" with_functions bundle checked
}

# tar ends as on a full disk: a part of the archive is written.
Bundle_leaves_an_archive_as_it_was_until_the_new_one_is_whole() {
  mkdir out && touch out/file && echo old >out.tar.gz
  pack() { target=$PWD/out stage=$PWD/stage && pack_bundle; }
  stand_in tar 'while [ "$1" != -czf ]; do shift; done; echo part >"$2"; exit 2'
  expect_says 74 "cannot write $PWD/out.tar.gz: make room on its disk" with_functions bundle pack
  expect_equal "$(cat out.tar.gz)" old
  rm -r stage bin/tar && expect_exit 0 with_functions bundle pack
  expect_equal "$(tar -tzf out.tar.gz | sort | xargs)" "out/ out/file"
  expect_equal "$output" "    $(du -h out.tar.gz | cut -f 1): $PWD/out.tar.gz"
}

# environment: LD_LIBRARY_PATH and OMPI_MCA_plm of the bundle /b, and what is said, where there are only the tools in bin/.
environment() {
  stand_in print 'printf "%s\n" "$LD_LIBRARY_PATH" "${OMPI_MCA_plm-none}"'
  with_tools env sh dirname -- env -i PATH="$PWD/bin:$PWD/tools" CUDA_HOME="$PWD/toolkit" VIRTUAL_ENV="$PWD/none" LD_LIBRARY_PATH="$1" \
    sh -c 'bundle=/b && . "$1" && print' sh "$repo/launch/bundle-environment.sh" 2>&1
}

Bundle_finds_cuda_libraries_of_toolkit_and_python() {
  local wheels=lib/python3.12/site-packages/nvidia
  stand_in python3 'echo asked'
  mkdir -p toolkit/lib64 "$wheels"/{nccl,cufft,cu13}/lib
  touch toolkit/lib64/{libcudnn.so.9,libcublas.so.13} "$wheels"/{nccl/lib/libnccl.so.2,cu13/lib/libcublas.so.13,cufft/lib/libcufft.so.12}
  expect_equal "$(environment /mine | xargs)" "/b/lib:/mine:$PWD/toolkit/lib64:$PWD/bin/../$wheels/cu13/lib:$PWD/bin/../$wheels/nccl/lib ^rsh"
}

Bundle_asks_python_for_wheels_that_do_not_lie_beside_it() {
  mkdir -p elsewhere/nvidia/nccl/lib && touch elsewhere/nvidia/nccl/lib/libnccl.so.2
  stand_in python3 "echo '$PWD/elsewhere'"
  expect_equal "$(environment '' | head -n 1)" "/b/lib:$PWD/elsewhere/nvidia/nccl/lib"
  stand_in python3 'echo broken >&2; exit 1'
  expect_equal "$(environment '' | head -n 1)" /b/lib
}

Bundle_starts_ranks_on_one_machine_without_a_way_to_others() {
  expect_equal "$(environment '' | tail -n 1)" "^rsh"
  stand_in ssh : && expect_equal "$(environment '' | tail -n 1)" none
  rm bin/ssh && stand_in rsh : && expect_equal "$(environment '' | tail -n 1)" none
}

run_tests "$@"
