#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/containers, as far as they can be judged without Docker, Apptainer and Kubernetes.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=recipes.sh
source "$repo/tests/launch/recipes.sh"
containers=$repo/launch/containers

Mpi_job_fits_the_schema_of_the_operator() {
  python3 -c 'import yaml, jsonschema' 2>/dev/null || skip "python3-yaml and python3-jsonschema are not installed"
  # shellcheck disable=SC2317  # called by expect_exit
  check() { python3 -c 'import json, sys, yaml, jsonschema; jsonschema.validate(yaml.safe_load(open(sys.argv[1])), json.load(open(sys.argv[2])))' "$1" "$repo/tests/launch/mpijob.schema.json"; }
  expect_exit 0 check "$containers/mpijob.yaml"
  sed 's/slotsPerWorker/slotsPerWorkers/' "$containers/mpijob.yaml" >wrong.yaml
  expect_exit 1 check wrong.yaml
}

Volumes_that_are_mounted_are_there() {
  local name
  while read -r name; do
    grep "{name: $name, " "$containers/mpijob.yaml" | grep -qv mountPath || fail "$name is mounted and not defined"
  done < <(sed -n 's/.*{name: \([a-z]*\), mountPath.*/\1/p' "$containers/mpijob.yaml" | sort -u)
}

Ranks_of_the_mpi_job_are_slots_of_its_workers() {
  local slots workers
  slots=$(sed -n 's/.*slotsPerWorker: //p' "$containers/mpijob.yaml")
  workers=$(sed -n 's/.*replicas: //p' "$containers/mpijob.yaml" | tail -n 1)
  expect_contains "$(cat "$containers/mpijob.yaml")" "\"-np\", \"$((slots * workers))\""
}

Recipes_name_only_what_is_there() {
  local recipe path
  for recipe in Dockerfile lockstep.def; do
    while read -r path; do
      [ -e "$repo/$path" ] || fail "$recipe names $path, which is not there"
    done < <(grep -oE '\blaunch/[a-zA-Z/._-]+' "$containers/$recipe" | sort -u)
    expect_contains "$(cat "$containers/$recipe")" "launch/install-dependencies build"
    expect_contains "$(cat "$containers/$recipe")" "launch/build release lockstep_product"
    expect_contains "$(cat "$containers/$recipe")" "launch/containers/run-packages build/release/lockstep* > run-packages.txt"
  done
}

# Commands of RUN, %post and the like, as the shell reads them.
Recipes_are_shell_where_they_must_be() {
  local name
  instructions "$containers/Dockerfile" | sed -n 's/^RUN //p' >run.sh
  expect_contains "$(cat run.sh)" "launch/build"
  expect_exit 0 bash -n run.sh
  for name in post environment runscript test; do
    section "$containers/lockstep.def" 1 "$name" >part.sh
    section "$containers/lockstep.def" 2 "$name" >>part.sh
    [ "$(grep -cv '^#' part.sh)" -gt 0 ] || fail "no %$name"
    expect_lacks "$(cat part.sh)" Bootstrap
    expect_exit 0 bash -n part.sh
  done
}

# Stages that tests/launch/containers builds for real.
Compilers_stay_behind_in_the_first_stage() {
  local last
  last=$(instructions "$containers/Dockerfile" | awk '/^FROM /{ text = "" } { text = text $0 "\n" } END { print text }')
  expect_contains "$last" "COPY --from=build /lockstep/build/release/lockstep* build/release/"
  expect_lacks "$last" install-dependencies
  expect_equal "$(instructions "$containers/Dockerfile" | grep -c '^FROM .* AS build$')" 1
  expect_equal "$(header "$containers/lockstep.def" 1 Stage) $(section "$containers/lockstep.def" 2 files | head -n 1)" "build # from build"
  expect_lacks "$(section "$containers/lockstep.def" 2 post)" install-dependencies
}

# With a stand-in for what the build leaves: the plugins come along, and the libraries that they need.
Definition_takes_the_plugins_along() {
  mkdir -p build/release launch/containers && touch build/release/{lockstep,lockstep_nccl.so,build.ninja}
  section "$containers/lockstep.def" 1 post | sed -n '/mkdir build/,$p' >post.sh
  expect_exit 0 sh -e post.sh
  expect_equal "$(find build/image -type f -printf '%f\n' | sort | xargs)" "lockstep lockstep_nccl.so"
  expect_contains "$(section "$containers/lockstep.def" 2 files)" "/lockstep/build/image /lockstep/build/release"
}

Containers_know_the_host_keys_of_their_image_and_no_others() {
  skip_without ssh-keygen
  local script key
  script=$(instructions "$containers/Dockerfile" | sed -n 's/^RUN apt-get.*\(ssh-keygen -A .*ssh_known_hosts\).*/\1/p' | sed "s|/etc/ssh|$PWD|g; s|ssh-keygen -A|ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key|")
  expect_exit 0 bash -c "$script"
  key=$(cut -d ' ' -f 2 ssh_host_ed25519_key.pub)
  expect_contains "$(ssh-keygen -F lockstep-worker-0.lockstep -f ssh_known_hosts)" "$key"
  expect_lacks "$(instructions "$containers/Dockerfile")" StrictHostKeyChecking
  expect_lacks "$(instructions "$containers/Dockerfile")" UserKnownHostsFile
}

Images_have_the_table_that_get_data_reads() {
  expect_contains "$(cat "$containers/Dockerfile")" "/lockstep/data/sets/catalogue.txt data/sets/"
  expect_contains "$(cat "$containers/lockstep.def")" " /lockstep/data/sets/catalogue.txt"
}

Run_packages_are_those_of_the_libraries() {
  skip_without dpkg-query ldd
  [ -x "${LOCKSTEP_PROGRAM:-}" ] || skip "no LOCKSTEP_PROGRAM"
  expect_says 0 "libopenmpi3" "$containers/run-packages" "$LOCKSTEP_PROGRAM"
  expect_contains "$output" "libyaml-cpp"
  expect_lacks "$output" "-dev"
}

# No package holds the first library; the last one's has a file of that name for those who build, too.
Run_packages_asks_the_loader_and_dpkg() {
  touch liba.so.1 libc.so.6 libd.so.4
  # shellcheck disable=SC2016  # the stand-in's own
  stand_in ldd 'echo "$*" >called; printf "%s\n" "liba.so.1 => $PWD/liba.so.1 (0x1)" "/lib64/ld-linux.so.2 (0x2)" "libb.so.1 => not found" \
    "libc.so.6 => $PWD/libc.so.6 (0x3)" "libd.so.4 => $PWD/libd.so.4 (0x4)"'
  stand_in dpkg-query 'case $* in
    "-S */libc.so.6") echo "libc6:amd64: /lib/libc.so.6" ;;
    "-S */libd.so.4") printf "%s\n" "libd4, libd-bin: /lib/libd.so.4" "libd-dev:amd64: /lib/libd.so.4" ;;
    *) echo "no path found matching pattern" >&2; exit 1 ;; esac'
  expect_exit 0 "$containers/run-packages" one two
  expect_equal "$output" $'libc6\nlibd4'
  expect_says 2 "of which programs?" "$containers/run-packages"
  expect_equal "$("$containers/run-packages" 2>/dev/null)" ""
  expect_says 0 "Prints the Debian packages" "$containers/run-packages" --help
  expect_equal "$(cat called)" "one two"
}

Instructions_of_the_dockerfile_are_known() {
  expect_equal "$(grep -vE '^(#|ARG|FROM|ENV|WORKDIR|COPY|RUN|CMD| )|^$' "$containers/Dockerfile")" ""
}

run_tests "$@"
