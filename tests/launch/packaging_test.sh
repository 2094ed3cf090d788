#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The scripts that make packages, with stand-ins for the tools: wrong command lines, missing parts, what they ask of the tools.
# bundle_test.sh and package_test.sh make a real bundle and a real package.
# shellcheck disable=SC1090,SC2016,SC2030,SC2031,SC2034,SC2317  # the stand-ins expand their own variables; functions come from the scripts
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
export LC_ALL=C # names in one order

# with_functions SCRIPT COMMAND...: in a shell that has the script's functions, and those of lib.sh.
with_functions() {
  local script=$1
  shift
  (set +u && source "$repo/launch/lib.sh" && source "$repo/tests/gpu/list.sh" && source <(sed '/^source /d; /^main "\$@"/d; /^help_if_asked/,$d' "$repo/launch/$script") && "$@")
}

Bundle_refuses_what_it_cannot_make() {
  mkdir empty kept && touch kept/mine
  expect_says 2 "--data needs a folder" "$repo/launch/bundle" --data
  expect_says 2 "unknown option --frobnicate (try --help)" "$repo/launch/bundle" --frobnicate
  expect_says 2 "$PWD/kept is there and is not a bundle" "$repo/launch/bundle" --build empty kept
  expect_says 66 "no MNIST files in $PWD/empty: launch/get-data mnist" "$repo/launch/bundle" --build empty --data empty out
  expect_says 66 "no program $PWD/empty/lockstep: launch/build" "$repo/launch/bundle" --build empty out
  expect_no_file out
  mkdir -p kept/libexec && touch kept/libexec/environment.sh
  expect_says 66 "no program" "$repo/launch/bundle" --build empty kept
  expect_says 0 "also makes DIR.tar.gz" "$repo/launch/bundle" --help
  expect_file kept/mine
}

# with_tools TOOL... -- COMMAND...: where no other tools are installed.
with_tools() {
  local tools=$PWD/tools
  mkdir -p "$tools"
  while [ "$1" != -- ]; do ln -sf "$(type -P "$1")" "$tools/" && shift; done
  shift
  PATH=$tools "$@"
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
  expect_says 74 "cannot write to /proc: name another folder" launch/bundle --build b /proc/out
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

# A program and two tests on GPUs, of which one is for two ranks; the file of results that they name.
Bundle_takes_the_gpu_suite_along() {
  local name
  for name in lockstep kernels_bench one_test two_test; do stand_in "b/$name" ': tests/golden/layers.safetensors'; done
  stand_in ctest 'echo "1: Test command: $PWD/b/one_test"; echo "  Test #1: one"; echo "2: Test command: /usr/bin/mpirun \"-n\" \"2\" $PWD/b/two_test"; echo "  Test #2: two"'
  stand_in strip 'cp "$3" "$2"'
  mkdir -p stage/{bin,libexec,tests/{bench,gpu,golden}}
  suite() { build=b stage=stage && copy_gpu_suite; }
  expect_exit 0 with_functions bundle suite
  expect_equal "$output" ""
  expect_equal "$(cat stage/tests/gpu/tests.txt)" $'one 0 one_test\ntwo 2 two_test'
  expect_equal "$(cd stage && echo bin/* libexec/*)" "$(echo {bin,libexec}/{kernels_bench,one_test,two_test})"
  expect_equal "$(ls stage/tests/golden)" layers.safetensors
  for name in gpu/run results.sh bench/torch_step.py arithmetic/run; do expect_same_file "stage/tests/$name" "$repo/tests/$name"; done
  expect_no_file stage/tests/gpu/CMakeLists.txt
  rm b/one_test && expect_says 66 "$PWD/b/one_test is not built: launch/build" with_functions bundle suite
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

# What env is asked for, a word a line.
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

Package_builds_what_it_needs_and_says_what_is_missing() {
  local tool
  copy_script package
  for tool in dpkg-shlibdeps file gzip help2man; do stand_in "$tool" :; done
  stand_in cpack 'echo "cpack $* $SOURCE_DATE_EPOCH" >>calls; printf "%s\n" "${@//[[:cntrl:]]/ }" >words; echo deb >lockstep.deb; echo "CPack: - package: $PWD/lockstep.deb generated."'
  stand_in dpkg-deb 'echo "Package: lockstep"'
  stand_in launch/build 'echo "build $*" >>calls'
  expect_says 69 "cpack is not installed: launch/install-dependencies build package" with_tools bash dirname -- launch/package
  expect_says 0 "Makes a Debian package" launch/package --help
  expect_says 2 "'--frobnicate' is not an option (try --help)" launch/package --frobnicate
  expect_says 2 "--to needs a folder" launch/package --to
  expect_says 66 "no program in $PWD/build/package: launch/build package" launch/package
  expect_exit 66 launch/package --cuda
  expect_says 66 "no liblockstep.a in $PWD/build/package: launch/build package lockstep_archive" launch/package --development
  expect_equal "$(cat calls)" $'build package lockstep_product\nbuild release lockstep_product\nbuild package lockstep_archive'
  mkdir b && touch b/CPackConfig.cmake && expect_says 66 "no program in $PWD/b" launch/package --build b
  stand_in c/lockstep : && expect_says 66 "no program in $PWD/c" launch/package --build c
  stand_in b/lockstep : && echo "LOCKSTEP_CUDA_SUMMARY:INTERNAL=CPU-only: no nvcc" >b/CMakeCache.txt
  expect_says 69 "$PWD/b is CPU-only: no nvcc: leave out --cuda" launch/package --cuda --build b
  rm calls && SOURCE_DATE_EPOCH=5 expect_exit 0 launch/package --build b --to to
  expect_equal "$(cat b/calls)" "cpack --config $PWD/b/CPackConfig.cmake -B $PWD/to 5"
  expect_contains "$output" "==> $(du -h b/lockstep.deb | cut -f 1): $PWD/b/lockstep.deb"
  expect_contains "$output" $'    Package: lockstep\n    sha256 '"$(sha256sum <b/lockstep.deb | cut -d ' ' -f 1)"
  unset SOURCE_DATE_EPOCH
  stand_in git '[ "$*" = "-C ${PWD%/b} log -1 --format=%ct" ] && echo 77' && rm b/calls && expect_exit 0 launch/package --build b
  expect_contains "$(cat b/calls)" "-B $PWD/b 77"
  stand_in git 'echo no repository >&2; exit 1' && touch -d @99 CHANGELOG.md && expect_exit 0 launch/package --build b
  expect_contains "$(cat b/calls)" "-B $PWD/b 99"
  expect_lacks "$output" "no repository"
  mkdir -p b/trainer/library && touch b/trainer/library/liblockstep.a && expect_exit 0 launch/package --development --build b
  expect_equal "$(sed 's/=.*//; /^-D$/d; s/^CPACK_DEBIAN_PACKAGE_//' b/words | xargs)" "--config $PWD/b/CPackConfig.cmake CPACK_INSTALL_CMAKE_PROJECTS \
NAME SECTION DEPENDS CPACK_PACKAGE_DESCRIPTION_SUMMARY DESCRIPTION SHLIBDEPS RECOMMENDS CONFLICTS PROVIDES REPLACES SUGGESTS -B $PWD/b"
  stand_in cpack 'exit 1'
  SOURCE_DATE_EPOCH=5 expect_says 70 "the package could not be made" launch/package --build b
}

Wheel_is_made_of_a_bundle_without_tests() {
  copy_script wheel
  stand_in launch/bundle 'echo "$*" >>calls'
  stand_in python3 'head -c 1048576 /dev/zero >"$3/name.whl"; echo name.whl; echo "${1#"$PWD"/} ${2##*/} $3" >>calls'
  expect_says 2 "--build needs a folder" launch/wheel --build
  expect_exit 2 launch/wheel --frobnicate
  expect_says 0 "Makes the Python package" launch/wheel --help
  mkdir b && TMPDIR=$PWD expect_says 0 "==> making the wheel of $PWD/b" launch/wheel --build b wheels
  expect_contains "$output" "    1024 KiB: $PWD/wheels/name.whl"
  expect_equal "$(sed 's|/tmp\.[^/]*/bundle$||' calls)" "--without-tests --build $PWD/b $PWD"$'\n'"launch/python/wheel_backend.py bundle $PWD/wheels"
  expect_equal "$(find . -maxdepth 1 -name 'tmp.*')" ""
  touch file
  TMPDIR=$PWD expect_exit 74 launch/wheel --build b file/wheels
  rm calls && TMPDIR=$PWD expect_exit 0 launch/wheel --build no/such wheels
  expect_contains "$(cat calls)" "--build $PWD/no/such " # which refuses it
}

# Tools in the environment note their calls, and print the hash. One is called in a folder that nobody has used.
Wheel_is_tried_in_an_environment_of_its_own() {
  local wheel=$PWD/wheels/name.whl mpi="mpirun -np 2 --bind-to none --oversubscribe" published
  copy_script wheel && mkdir launch/jobs && cp "$repo/launch/jobs/hashes.txt" launch/jobs/
  printf '%s\n' 'allow_mpi_as_root() { export ROOT=root; }' 'allow_mpi_without_network() { export NETWORK=lo; }' >>launch/lib.sh
  stand_in launch/bundle :
  stand_in python3 'if [ "$2" != venv ]; then touch "$3/name.whl" && echo name.whl && exit; fi
    echo "python3 $*" >>"$world/calls"; [ ! -e "$world/no-venv" ] && mkdir -p "${@: -1}/bin" && cp "$world"/venv/* "${@: -1}/bin/"'
  stand_in venv/pip 'echo "pip $*" >>"$world/calls"; [[ ! -e $world/offline || $* == *--no-index* ]]'
  stand_in venv/lockstep 'echo "lockstep $* $ROOT $NETWORK$PYTHONPATH$(ls)" >>"$world/calls"; touch used; echo "$hash"'
  stand_in venv/python 'if [ "$1" = -c ]; then echo /jobs; exit; fi
    echo "python $* $ROOT $NETWORK$PYTHONPATH$(ls)" >>"$world/calls"; touch used; grep -q train__epochs=5 "$1" && echo "$hash" >&2'
  stand_in mpirun 'echo "mpirun $*" >>"$world/calls"; exec "${@:6}"'
  published=$(sed -n 's/^[0-9a-f]* [0-9]* \([0-9a-f]*\) mnist.yaml, 5 epochs$/\1/p' launch/jobs/hashes.txt)
  tried() { world=$PWD hash=$1 TMPDIR=$PWD PYTHONPATH=mine launch/wheel --check wheels; }
  export world hash PYTHONPATH
  expect_exit 0 tried "$published"
  expect_equal "$(grep -c 's, the published hash: ' <<<"$output")" 4
  expect_equal "$(sed "s|$PWD/tmp[^/]*|S|" calls)" "python3 -m venv S/venv
pip -q install $wheel
python S/train.py root lo
$mpi python S/train.py
python S/train.py root lo
lockstep train /jobs/mnist.yaml train.epochs=5 root lo
$mpi lockstep train $PWD/launch/jobs/mnist.yaml train.epochs=5
lockstep train $PWD/launch/jobs/mnist.yaml train.epochs=5 root lo"
  expect_says 70 "other weights than the published: python $PWD/tmp." tried 0123
  stand_in venv/python 'exit 1' && expect_says 70 "failed: python $PWD/tmp." tried "$published"
  touch offline && rm calls && expect_exit 70 tried "$published"
  expect_equal "$(sed "s|$PWD/tmp[^/]*|S|" calls)" "python3 -m venv S/venv
pip -q install $wheel
python3 -m venv --clear --system-site-packages S/venv
pip -q install --no-index $wheel"
  touch no-venv && expect_says 69 "the wheel cannot be installed: is python3-venv there?" tried "$published"
}

Manual_pages_are_what_help_says() {
  copy_script manual-pages && mkdir -p docs/reference && printf '%s\n' '## lockstep train' Text '## lockstep bench step' >docs/reference/commands.md
  stand_in program 'if [ "$1" = --version ]; then echo "lockstep 1.2.3"; else printf "%s\n" "Says $*" "in $COLUMNS columns." "" "Usage: x"; fi'
  expect_says 69 "help2man is not installed" with_tools bash dirname -- launch/manual-pages bin/program pages
  stand_in help2man 'printf "%s\n" "$@" && "${@: -1}"'
  expect_exit 0 launch/manual-pages bin/program pages
  expect_equal "$(cd pages && echo *)" "lockstep-bench-step.1 lockstep-train.1 lockstep.1"
  expect_equal "$(sed 's|/.*/lockstep|S/lockstep|' pages/lockstep-bench-step.1 | xargs)" "--no-info --version-string 1.2.3 --source Lockstep 1.2.3 --manual Lockstep Manual \
--name Says bench step --help in 1000 columns S/lockstep-bench-step Says bench step --help in 1000 columns. Usage: x"
  expect_says 2 "say of which program, and into which folder" launch/manual-pages one
  expect_says 0 "Makes the manual pages" launch/manual-pages --help
}

Manual_pages_keep_sections_keys_and_lines() {
  printf '%s\n' Options: '  -h' 'Note here' 'Another one' Examples: '  x' 'Keys of a job file' 'train.epochs   10   passes' >help
  expect_equal "$(with_functions manual-pages sections <help)" \
    $'Options:\n  -h\n*Notes*\n\nNote here\nAnother one\n\nExamples\n  x\n*Job keys*\n\nKeys of a job file\n  train.epochs 10   passes'
  expect_equal "$(printf '.IP\nx\ny\n.PP\nz\n' | with_functions manual-pages as_it_stands | xargs)" ".IP .nf x y .fi .PP z"
  expect_equal "$(printf 'a\n.IP\nx\n' | with_functions manual-pages as_it_stands | xargs)" "a .IP .nf x .fi"
}

run_tests "$@"
