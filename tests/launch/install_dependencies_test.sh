#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/install-dependencies in a copy of its folder, with stand-ins for dpkg-query, apt-get, sudo and id. And the scripts
# that make packages: wrong command lines, missing parts, and their work with stand-ins for the tools.
# shellcheck disable=SC1090,SC2016,SC2030,SC2031,SC2034,SC2317  # the stand-ins expand their own variables; functions come from the scripts
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# Two groups: "build" of cmake and ninja-build, "test" of clang. cmake is installed; apt-get installs for real, into a file.
make_world() {
  mkdir -p launch bin
  cp "$repo"/launch/{install-dependencies,lib.sh} launch/
  printf '%s\n' 'build cmake CMake' 'build ninja-build Ninja, a builder' 'test clang clang' >launch/packages.txt
  echo cmake >installed
  stand_in dpkg-query '[ "$1 $2 $3" = "-W -f \${Package} \${db:Status-Status}\\n" ] || exit 2
    shift 3; for p; do grep -qx "$p" installed && echo "$p installed" || echo "no packages found matching $p" >&2; done; exit 1'
  stand_in apt-get 'echo "apt-get $*${DEBIAN_FRONTEND:+, $DEBIAN_FRONTEND}" >>calls; [ ! -f broken ] || { echo E: broken mirror; exit 100; }
    [[ " $* " == *" -s "* || " $* " != *" install "* ]] || for p; do echo "$p"; done >>installed'
  stand_in sudo '[ ! -f no-sudo ] || exit 1; [ "$1" = -n ] && shift; echo "sudo $*" >>calls; exec "$@"'
  stand_in id 'cat uid 2>/dev/null || echo 0'
  unset LOCKSTEP_NO_INSTALL
  touch calls
}

Install_says_what_it_installs_before_it_does() {
  make_world
  expect_exit 0 launch/install-dependencies
  expect_equal "${output% [0-9]* s}" $'==> packages: installing 1 of 2 by apt-get, with what they depend on: ninja-build\n    installed in'
  expect_equal "$(tail -n 1 calls)" "apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends ninja-build, noninteractive"
  expect_lacks "$(cat calls)" "sudo"
  expect_lacks "$(cat calls)" " update"
  expect_says 0 "--list [GROUP...]   only prints" launch/install-dependencies --help
}

Install_leaves_apt_alone_when_all_is_there() {
  make_world && echo ninja-build >>installed
  expect_says 0 "all 2 are installed" launch/install-dependencies build
  expect_equal "$(cat calls)" ""
}

Install_takes_several_groups() {
  make_world
  expect_exit 0 launch/install-dependencies build test
  expect_contains "$(cat installed)" clang
  expect_exit 0 launch/install-dependencies --list test
  expect_equal "$output" "$(printf '    %-22s %s' clang clang)"
  expect_equal "$(launch/install-dependencies --list)" "$(printf '    %-22s %s\n' cmake CMake ninja-build 'Ninja, a builder')"
}

Install_goes_through_sudo_as_an_ordinary_user() {
  make_world && echo 1000 >uid
  expect_exit 0 launch/install-dependencies
  expect_contains "$(cat calls)" "sudo env DEBIAN_FRONTEND=noninteractive apt-get"
}

Install_without_the_right_to_names_the_command_for_an_administrator() {
  make_world && echo 1000 >uid && touch no-sudo
  expect_says 69 "'apt-get install --no-install-recommends ninja-build', or set LOCKSTEP_NO_INSTALL=1 where they come from elsewhere" launch/install-dependencies
  expect_equal "$(cat calls)" ""
}

# Lists that do not have a package yet, or that have a file which is gone.
Install_refreshes_stale_lists_and_tries_once_more() {
  make_world
  stand_in apt-get 'echo "$*" >>calls
    case " $* " in *" update "*) rm -f unknown gone ;; *" -s "*) [ ! -e unknown ] ;; *) [ ! -e gone ] ;; esac'
  expect_calls() {
    touch "$1" && : >calls
    expect_exit 0 launch/install-dependencies
    expect_equal "$(sed 's/.* update$/update/; s/^-s .*/look/; s/.* install .*/install/' calls | xargs)" "$2"
  }
  expect_calls unknown "look update look install"
  expect_calls gone "look look install update install"
}

Install_shows_why_it_failed() {
  make_world && touch broken
  expect_says 69 "E: broken mirror" launch/install-dependencies
  expect_lacks "$(cat calls)" "install --no-install-recommends"
}

Install_on_another_system_names_what_is_needed_by_function() {
  make_world && rm bin/dpkg-query
  local tool
  for tool in bash dirname awk sort cat env; do ln -s "$(PATH=/usr/bin:/bin command -v $tool)" "bin/$tool"; done
  PATH=$PWD/bin expect_says 69 "not a Debian system" launch/install-dependencies
  expect_equal "$(tail -n +2 <<<"$output")" "$(printf '    %-22s %s\n' cmake CMake ninja-build 'Ninja, a builder')"$'\n    then set LOCKSTEP_NO_INSTALL=1, which skips this step.'
  expect_equal "$(PATH=$PWD/bin launch/install-dependencies 2>/dev/null)" ""
}

Install_does_nothing_when_told_so() {
  make_world
  LOCKSTEP_NO_INSTALL=1 expect_exit 0 launch/install-dependencies
  expect_equal "$output" "==> packages: left alone (LOCKSTEP_NO_INSTALL is set)"
  expect_equal "$(cat calls)" ""
}

Install_refuses_a_group_that_does_not_exist() {
  make_world
  expect_says 2 "groups: build test" launch/install-dependencies tests
}

# Debian has jpeg62 where Ubuntu has jpeg8: no package has a release's number in its name. (CLI11's is its own.)
Packages_to_build_with_have_the_same_name_on_debian_and_ubuntu() {
  expect_equal "$("$repo/launch/install-dependencies" --list build | awk '$1 != "libcli11-dev" && $1 ~ /[a-z][0-9][0-9]|-[0-9]+(-|$)/ { print $1 }')" ""
}

Every_group_of_the_list_can_be_asked_for_and_no_two_as_one() {
  local group groups
  groups=$(awk '/^[a-z]/ { gsub(",", "\n", $1); print $1 }' "$repo/launch/packages.txt" | sort -u)
  expect_contains "$groups" fashion-mnist
  for group in $groups; do expect_exit 0 "$repo/launch/install-dependencies" --list "$group"; done
  expect_says 2 "no group 'test,package'" "$repo/launch/install-dependencies" --list test,package
}

Package_list_names_each_package_and_what_it_is_for() {
  expect_equal "$(awk '!/^#/ && (NF < 3 || $1 !~ /^(build(,library)?|test(,package)?|tidy|slurm|mpich|simgrid|arm|containers|fashion-mnist)$/)' "$repo/launch/packages.txt")" ""
}

# with_functions SCRIPT COMMAND...: in a shell that has the script's functions, and those of lib.sh.
with_functions() {
  local script=$1
  shift
  (set +u && source "$repo/launch/lib.sh" && source <(sed '/^source /d; /^main "\$@"/d; /^help_if_asked/,$d' "$repo/launch/$script") && "$@")
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
  stand_in ldd "case \$1 in
      *ucx*) echo 'libucp.so.0 => /lib/libucp.so.0 (0x1)' ;;
      *) printf '%s\n' 'libz.so.1 => $PWD/libz.so.1 (0x1)' 'libc.so.6 => /lib/libc.so.6 (0x2)' '/lib64/ld-linux.so.2 (0x3)' 'libnccl.so.2 => not found' \$MORE ;;
    esac"
  stand_in strip 'while [ "$1" != -o ]; do shift; done; cp "$3" "$2"'
  export MORE=''
}

Bundle_takes_the_libraries_that_other_machines_may_lack() {
  make_stage
  copy() { stage=stage with_cuda=$1 && copy_libraries; }
  expect_equal "$(with_functions bundle needs stage/libexec/lockstep | xargs)" "libc.so.6 /lib/libc.so.6 libnccl.so.2 not libz.so.1 $PWD/libz.so.1"
  expect_exit 0 with_functions bundle copy false
  expect_equal "$(ls stage/lib)" libz.so.1
  expect_says 69 "libnccl.so.2, which --with-cuda-libraries takes along, is not found: set LD_LIBRARY_PATH" with_functions bundle copy true
  MORE='libq.so.1 => not found'
  stand_in ldd 'echo "libq.so.1 => not found"'
  expect_says 69 "libq.so.1, which the program needs, is not found: set LD_LIBRARY_PATH" with_functions bundle copy false
}

Bundle_leaves_plugins_for_fabrics_behind() {
  make_stage
  expect_exit 0 with_functions bundle copy_plugins plugins stage/here
  expect_equal "$(ls stage/here)" tcp.so
}

# A copy of the script in this folder, with stand-ins for what it calls.
copy_script() {
  mkdir -p launch
  cp "$repo/launch/$1" "$repo/launch/lib.sh" launch/
}

Package_builds_what_it_needs_and_says_what_is_missing() {
  local tool
  copy_script package
  for tool in dpkg-shlibdeps file gzip help2man; do stand_in "$tool" :; done
  stand_in cpack 'echo "cpack $* $SOURCE_DATE_EPOCH" >>calls; echo deb >lockstep.deb; echo "CPack: - package: $PWD/lockstep.deb generated."'
  stand_in dpkg-deb 'echo "Package: lockstep"'
  stand_in launch/build 'echo "build $*" >>calls'
  expect_says 2 "'--frobnicate' is not an option (try --help)" launch/package --frobnicate
  expect_says 2 "--to needs a folder" launch/package --to
  expect_says 66 "no program in $PWD/build/package: launch/build package" launch/package
  expect_exit 66 launch/package --cuda
  expect_says 66 "no liblockstep.a in $PWD/build/package: launch/build package lockstep_archive" launch/package --development
  expect_equal "$(cat calls)" $'build package lockstep_product\nbuild release lockstep_product\nbuild package lockstep_archive'
  stand_in b/lockstep : && touch b/CPackConfig.cmake && echo "LOCKSTEP_CUDA_SUMMARY:INTERNAL=CPU-only: no nvcc" >b/CMakeCache.txt
  expect_says 69 "$PWD/b is CPU-only: no nvcc: leave out --cuda" launch/package --cuda --build b
  rm calls && SOURCE_DATE_EPOCH=5 expect_exit 0 launch/package --build b --to to
  expect_equal "$(cat b/calls)" "cpack --config $PWD/b/CPackConfig.cmake -B $PWD/to 5"
  expect_contains "$output" ": $PWD/b/lockstep.deb"
  expect_contains "$output" $'    Package: lockstep\n    sha256 '"$(sha256sum <b/lockstep.deb | cut -d ' ' -f 1)"
  stand_in cpack 'exit 1'
  SOURCE_DATE_EPOCH=5 expect_says 70 "the package could not be made" launch/package --build b
}

Wheel_is_made_of_a_bundle_without_tests() {
  copy_script wheel
  stand_in launch/bundle 'echo "$*" >>calls'
  stand_in python3 'head -c 2048 /dev/zero >"$3/name.whl"; echo name.whl; echo "${1#"$PWD"/} ${2##*/} $3" >>calls'
  expect_says 2 "--build needs a folder" launch/wheel --build
  expect_exit 2 launch/wheel --frobnicate
  mkdir b && TMPDIR=$PWD expect_says 0 "==> making the wheel of $PWD/b" launch/wheel --build b wheels
  expect_contains "$output" "    2 KiB: $PWD/wheels/name.whl"
  expect_equal "$(sed 's|/tmp\.[^/]*/bundle$||' calls)" "--without-tests --build $PWD/b $PWD"$'\n'"launch/python/wheel_backend.py bundle $PWD/wheels"
  expect_equal "$(find . -maxdepth 1 -name 'tmp.*')" ""
  touch file
  TMPDIR=$PWD expect_exit 74 launch/wheel --build b file/wheels
  rm calls && TMPDIR=$PWD expect_exit 0 launch/wheel --build no/such wheels
  expect_contains "$(cat calls)" "--build $PWD/no/such " # which refuses it
}

Simulation_needs_a_build_and_hands_on_its_options() {
  copy_script simulate
  BUILD=nowhere expect_says 69 "there is no build in nowhere: run launch/build first, or name another with BUILD" launch/simulate
  BUILD=nowhere expect_says 0 "How a training step scales" launch/simulate --help
  stand_in b/lockstep_simulate 'echo "simulated $*"' && stand_in b/lockstep_simulated_step :
  BUILD=b expect_exit 0 launch/simulate --ranks 8
  expect_equal "$output" "simulated --ranks 8"
  BUILD=b expect_says 0 "simulated --help" launch/simulate -h
}

Manual_pages_keep_sections_keys_and_lines() {
  expect_says 2 "say of which program, and into which folder" "$repo/launch/manual-pages" one
  printf '%s\n' Options: '  -h' 'Note here' 'Another one' Examples: '  x' 'Keys of a job file' 'train.epochs   10   passes' >help
  expect_equal "$(with_functions manual-pages sections <help)" \
    $'Options:\n  -h\n*Notes*\n\nNote here\nAnother one\n\nExamples\n  x\n*Job keys*\n\nKeys of a job file\n  train.epochs 10   passes'
  expect_equal "$(printf '.IP\nx\ny\n.PP\nz\n' | with_functions manual-pages as_it_stands | xargs)" ".IP .nf x y .fi .PP z"
  expect_equal "$(printf 'a\n.IP\nx\n' | with_functions manual-pages as_it_stands | xargs)" "a .IP .nf x .fi"
}

run_tests "$@"
