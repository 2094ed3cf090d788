#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/package, launch/spack and CHANGELOG.md. tests/launch/package installs the package on a bare Debian.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
build=$(dirname "$program")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# need_package: made once; its path goes to $package.
need_package() {
  skip_without cpack dpkg-deb dpkg-shlibdeps file
  if ! compgen -G "$made/*.deb" >/dev/null; then expect_exit 0 "$repo/launch/package" --build "$build" --to "$made"; fi
  package=$(compgen -G "$made/*.deb")
}

field() { dpkg-deb --field "$package" "$1"; }
version() { "$program" --version | cut -d ' ' -f 2; }

Newest_changes_are_of_the_programs_version() {
  [ -x "$program" ] || skip "no $program"
  expect_equal "$(sed -n 's/^## \[\([^]]*\)\].*/\1/p' "$repo/CHANGELOG.md" | head -n 1)" "$(version)"
}

Package_says_what_it_is_and_needs() {
  need_package
  expect_equal "$(field Version)" "$(version)"
  expect_equal "$(field Architecture)" "$(dpkg --print-architecture)"
  expect_contains "$(field Depends)" openmpi-bin
  expect_contains "$(field Depends)" libopenmpi3
  expect_contains "$(field Depends)" libyaml-cpp
  expect_lacks "$(field Depends)" -dev
  expect_contains "$(field Maintainer)" "@"
}

Package_holds_what_is_installed() {
  need_package
  local file list name
  name=$(field Package)
  list=$(dpkg-deb --contents "$package")
  for file in bin/lockstep bin/lockstep-get-data share/lockstep/models/net.yaml share/lockstep/jobs/{mnist.yaml,hashes.txt} \
    share/lockstep/data/sets/catalogue.txt "share/doc/$name"/{copyright,README.md,{changelog,CHANGELOG.md}.gz,docs/install.md}; do
    expect_contains "$list" " ./usr/$file"
  done
  expect_lacks "$list" _test
  expect_lacks "$list" libmpi.so
}

Packed_program_runs_from_its_place() {
  need_package
  dpkg-deb --extract "$package" it
  expect_exit 0 env -i PATH=/usr/bin:/bin it/usr/bin/lockstep validate mnist data.set=synthetic
  expect_contains "$(it/usr/bin/lockstep --version --verbose)" "$PWD/it/usr/share/lockstep/jobs"
  expect_equal "$(objdump -p it/usr/bin/lockstep | grep -E 'RPATH|RUNPATH')" ""
}

Package_says_what_is_missing() {
  skip_without cpack dpkg-shlibdeps
  mkdir empty
  expect_exit 66 "$repo/launch/package" --build empty
  expect_contains "$output" "no program"
  expect_exit 2 "$repo/launch/package" --rpm
}

# What it names exists in Spack; Spack itself is not asked. A stand-in for it notes what the recipe says.
Recipe_for_spack_names_what_the_build_looks_for() {
  skip_without python3
  mkdir -p spack spack_repo/builtin/build_systems
  cat >spack/package.py <<'END'
def note(name, *arguments, **options):
    print(name, *arguments, *(f"{key}={value}" for key, value in options.items()), sep="|")
for directive in ("license", "version", "variant", "depends_on", "conflicts"):
    globals()[directive] = lambda *a, _name=directive, **o: note(_name, *a, **o)
END
  echo "class CMakePackage: pass" >spack_repo/builtin/build_systems/cmake.py
  echo "class CudaPackage: pass" >spack_repo/builtin/build_systems/cuda.py
  expect_exit 0 env PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1 python3 "$repo/launch/spack/spack_repo/lockstep/packages/lockstep/package.py"
  for name in mpi@3: yaml-cpp cli11@2: fmt@9: nlohmann-json highway@1: asio "boost +context" openssl libjpeg-turbo@2.1: libpng libwebp \
    zlib-api protobuf "cuda@12:|when=+cuda" "cmake@3.25:|type=build"; do
    expect_contains "$output" "depends_on|$name"
  done
}

run_tests "$@"
