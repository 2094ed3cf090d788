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
  skip_without cpack dpkg-deb dpkg-shlibdeps file help2man
  if ! compgen -G "$made/*.deb" >/dev/null; then
    expect_exit 0 "$repo/launch/package" --build "$build" --to "$made"
    echo "$output" >"$made/said"
  fi
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
  for file in bin/lockstep{,-get-data,-run} share/lockstep/models/net.yaml share/lockstep/jobs/{mnist.yaml,hashes.txt} \
    share/lockstep/launch/{run,slurm/train.sbatch} share/lockstep/data/sets/catalogue.txt "share/doc/$name"/{copyright,README.md,{changelog,CHANGELOG.md}.gz,docs/install.md}; do
    expect_contains "$list" " ./usr/$file"
  done
  expect_lacks "$list" _test
  expect_lacks "$list" libmpi.so
}

Package_holds_the_plugins_of_its_build_and_says_so() {
  need_package
  dpkg-deb --extract "$package" it
  expect_equal "$(find it/usr/lib -name 'lockstep*.so' -printf '%f\n' 2>/dev/null | sort | xargs)" "$(plugins_of "$build")"
  expect_contains "$(cat "$made/said")" "a program $(in_cache LOCKSTEP_CUDA_SUMMARY "$build")"
  LD_LIBRARY_PATH=$(sed -n 's|^NCCL_LIBRARY:.*=\(.*\)/.*|\1|p' "$build/CMakeCache.txt") expect_nccl_found "$build" it/usr/lib/lockstep
}

Package_holds_completion_where_shells_look() {
  need_package
  dpkg-deb --extract "$package" it
  expect_same_file it/usr/share/bash-completion/completions/lockstep "$repo/launch/completion/lockstep.bash"
  expect_same_file it/usr/share/zsh/vendor-completions/_lockstep "$repo/launch/completion/lockstep.zsh"
  expect_same_file it/usr/share/fish/vendor_completions.d/lockstep.fish "$repo/launch/completion/lockstep.fish"
}

Package_holds_a_manual_page_of_each_command() {
  need_package
  skip_without man groff
  local command page
  dpkg-deb --extract "$package" it && gunzip it/usr/share/man/man1/*
  for command in '' $(sed -n 's/^## lockstep /-/p' "$repo/docs/reference/commands.md" | tr ' ' -); do
    expect_file "it/usr/share/man/man1/lockstep$command.1"
  done
  expect_equal "$(groff -man -Tutf8 -ww -z it/usr/share/man/man1/*.1 2>&1)" ""
  page=$(MANWIDTH=160 LC_ALL=C.UTF-8 man --warnings=w -l it/usr/share/man/man1/lockstep-train.1 2>&1 | col -bx)
  expect_contains "$page" "lockstep-train - Train as a job file says, alone or under mpirun or srun"
  expect_contains "$page" "SYNOPSIS
       lockstep train [OPTIONS] job [overrides...]"
  expect_contains "$page" "
       lockstep help keys
"
  expect_contains "$page" "
              mpirun -np 2 lockstep train launch/jobs/mnist.yaml
"
}

# CPack has nothing to do here, and fails at once.
Package_says_which_plugins_are_missing() {
  skip_without cpack dpkg-shlibdeps file help2man
  pretend_build without "$build" "" "with CUDA 13.0, without NCCL"
  touch without/CPackConfig.cmake
  expect_says 70 "a program with CUDA 13.0, without NCCL" "$repo/launch/package" --build without
  pretend_build unfinished "$build" lockstep_nccl "with CUDA 13.0, NCCL 2.28.9"
  touch unfinished/CPackConfig.cmake
  expect_says 66 "lockstep_nccl.so is not built" "$repo/launch/package" --build unfinished
}

Packed_program_runs_from_its_place() {
  need_package
  dpkg-deb --extract "$package" it
  expect_exit 0 env -i PATH=/usr/bin:/bin it/usr/bin/lockstep validate mnist data.set=synthetic
  expect_contains "$(it/usr/bin/lockstep --version --verbose)" "$PWD/it/usr/share/lockstep/jobs"
  expect_equal "$(objdump -p it/usr/bin/lockstep | grep -E 'RPATH|RUNPATH')" ""
}

Package_of_the_library_has_what_programs_are_built_with() {
  skip_without cpack dpkg-deb dpkg-shlibdeps file help2man
  [ -f "$build/trainer/library/liblockstep.a" ] || skip "no liblockstep.a in $build"
  expect_exit 0 "$repo/launch/package" --development --build "$build" --to "$PWD"
  package=$(compgen -G "lockstep-dev_*.deb") || fail "no package: $output"
  expect_equal "$(field Package)" lockstep-dev
  expect_equal "$(field Version)" "$(version)"
  expect_contains "$(field Depends)" libopenmpi-dev
  expect_lacks "$(field Depends)" jpeg
  dpkg-deb --extract "$package" it
  expect_file it/usr/share/doc/lockstep-dev/copyright
  expect_file it/usr/share/doc/lockstep-dev/examples/CMakeLists.txt
  expect_file "$(find it/usr/lib -name lockstepConfigVersion.cmake)"
  expect_equal "$(cd it/usr/include/lockstep && echo *)" "$(cd "$repo/include/lockstep" && echo *)"
  expect_no_file it/usr/bin
  expect_no_file it/usr/share/lockstep
}

# Names in the recipe exist in Spack; Spack itself is not asked. A stand-in for it notes what the recipe says, and turns values into
# CMake's as Spack's documentation of CMakePackage says.
make_spack() {
  skip_without python3
  mkdir -p spack spack_repo/builtin/build_systems
  cat >spack/package.py <<'END'
def note(name, *arguments, **options):
    print(name, *arguments, *(f"{key}={value}" for key, value in options.items()), sep="|")
for directive in ("license", "version", "variant", "depends_on", "conflicts"):
    globals()[directive] = lambda *a, _name=directive, **o: note(_name, *a, **o)
END
  cat >spack_repo/builtin/build_systems/cmake.py <<'END'
class CMakePackage:
    def define(self, name, value):
        if isinstance(value, bool): return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value if isinstance(value, str) else ';'.join(value)}"
    def define_from_variant(self, name, variant): return self.define(name, self.spec.satisfies("+" + variant))
class Spec(dict):
    def satisfies(self, text): return text in self["asked"]
    def __missing__(self, name): return type("Part", (), {"mpicc": "/bin/mpicc", "prefix": "/of/" + name})
def ask(package, architectures, *asked):
    package.spec = Spec(asked=asked)
    package.spec.variants = {"cuda_arch": type("Value", (), {"value": architectures})} if "+cuda" in asked else {}
    return " ".join([package.git, *package.build_targets, *package.cmake_args()])
END
  echo "class CudaPackage: pass" >spack_repo/builtin/build_systems/cuda.py
}

Recipe_for_spack_names_what_the_build_looks_for() {
  make_spack
  expect_exit 0 env PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1 python3 "$repo/launch/spack/spack_repo/lockstep/packages/lockstep/package.py"
  expect_equal "$(grep -v '^variant\|^conflicts' <<<"$output" | sort | xargs)" "$(printf '%s\n' 'license|MIT' 'version|main|branch=main' depends_on\|{c,cxx,cmake@3.25:,pkgconfig,googletest}'|type=build' \
    depends_on\|{mpi@3:,yaml-cpp,cli11@2:,fmt@9:,nlohmann-json,highway@1:,asio,'boost +context',openssl,libjpeg-turbo@2.1:,libpng,libwebp,zlib-api,protobuf} \
    'depends_on|cuda@12:|when=+cuda' 'depends_on|nccl@2.14:|when=+nccl' 'depends_on|cudnn@9:|when=+vendor' 'depends_on|curl|type=run' | sort | xargs)"
  expect_contains "$output" "variant|nccl|default=True|when=+cuda|"
  expect_contains "$output" "variant|vendor|default=False|when=+cuda|"
  expect_contains "$output" "conflicts|%gcc@:11|msg="
}

Recipe_for_spack_tells_cmake_what_was_asked_for() {
  make_spack
  local always="-DLOCKSTEP_MPI:STRING=any -DMPI_C_COMPILER:STRING=/bin/mpicc -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY:BOOL=ON"
  local spack="import sys; sys.path[:0] = ['.', '$repo/launch/spack/spack_repo/lockstep/packages/lockstep']
import package; from spack_repo.builtin.build_systems.cmake import ask"
  asked() { PYTHONDONTWRITEBYTECODE=1 python3 -c "$spack; print('says', ask(package.Lockstep(), $1))" | sed -n "s|^says file://$repo lockstep_product -DLOCKSTEP_WITH_CUDA:BOOL=||p"; }
  expect_equal "$(asked '()')" "OFF $always -DNCCL_LIBRARY:STRING=OFF -DCUDNN_LIBRARY:STRING=OFF"
  expect_equal "$(asked '("90", "100"), "+cuda", "+nccl"')" \
    "ON $always -DNCCL_ROOT:STRING=/of/nccl -DCUDNN_LIBRARY:STRING=OFF -DCMAKE_CUDA_ARCHITECTURES:STRING=90;100"
  expect_equal "$(asked '("none",), "+cuda", "+vendor"')" "ON $always -DNCCL_LIBRARY:STRING=OFF -DCUDNN_ROOT:STRING=/of/cudnn"
}

run_tests "$@"
