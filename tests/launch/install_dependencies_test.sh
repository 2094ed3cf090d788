#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/install-dependencies in a copy of its folder, with stand-ins for dpkg-query, apt-get, sudo and id.
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

run_tests "$@"
