#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The scripts that make packages, with stand-ins for the tools: wrong command lines, missing parts, what they ask of the tools.
# bundle_parts_test.sh does so for launch/bundle. package_test.sh makes a real package.
# shellcheck disable=SC1090,SC2016,SC2030,SC2031,SC2034,SC2317  # the stand-ins expand their own variables; functions come from the scripts
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
export LC_ALL=C # names in one order

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
  expect_contains "$output" "    a program CPU-only: no nvcc"
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
  expect_says 2 "one folder at a time: $PWD/one or two" launch/wheel one two
  expect_says 0 "Makes the Python package" launch/wheel --help
  mkdir b && TMPDIR=$PWD expect_says 0 "==> making the wheel of $PWD/b" launch/wheel --build b wheels
  expect_contains "$output" "    1024 KiB: $PWD/wheels/name.whl"
  expect_equal "$(sed 's|/tmp\.[^/]*/bundle$||' calls)" "--without-tests --build $PWD/b $PWD"$'\n'"launch/python/wheel_backend.py bundle $PWD/wheels"
  expect_equal "$(find . -maxdepth 1 -name 'tmp.*')" ""
  touch file
  TMPDIR=$PWD expect_exit 74 launch/wheel --build b file/wheels
  rm calls && TMPDIR=$PWD expect_exit 0 launch/wheel wheels --build no/such
  expect_contains "$output" ": $PWD/wheels/name.whl"
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
  sed -i 's/, 5 epochs//' launch/jobs/hashes.txt && expect_says 70 "launch/jobs/hashes.txt has no hash of mnist.yaml, 5 epochs" tried "$published"
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
