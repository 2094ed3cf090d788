#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Training across hosts (hosts.sh): started by mpirun --hostfile on one of them, through an agent in place of ssh. Needs
# $LOCKSTEP_PROGRAM and $LOCKSTEP_SLOW_LINK.   tests/hosts/hosts_test.sh [REGEX]
# shellcheck source-path=SCRIPTDIR source=../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/harness.sh"
# shellcheck source-path=SCRIPTDIR source=hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

# write_job STEPS
write_job() {
  cat >job.yaml <<END
model: net
data: {set: synthetic, train_samples: 1100, test_samples: 100, global_batch: 88}
train: {epochs: 100000, max_steps: $1, seed: 7, optimizer: {kind: sgd, lr: 0.02, momentum: 0.5}}
parallel: {device: cpu, grain: 11, timeout_seconds: ${TIMEOUT_SECONDS:-60}}
run: {dir: run, checkpoint_every_steps: 0, log_every_steps: 1}
END
}

hash_of_one_rank() { on nodea "$LOCKSTEP_PROGRAM" train job.yaml run.dir=alone | tail -n 1; }

# train HOSTS...: two ranks on each, started on the first.
train() {
  printf '%s slots=2\n' "$@" >hostfile
  on "$1" mpirun --hostfile hostfile -np $((2 * $#)) "$LOCKSTEP_PROGRAM" train job.yaml
}

# train_in_background HOSTS...: what it says goes to said, its process is $launcher.
train_in_background() {
  train "$@" >said 2>&1 &
  launcher=$!
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
}

no_rank_on() {
  local process
  for process in $(host_processes "$1"); do
    [ "$(readlink "/proc/$process/exe" 2>/dev/null)" != "$(realpath "$LOCKSTEP_PROGRAM")" ] || return 1
  done
}

Four_ranks_on_two_hosts_train_to_the_weights_of_one() {
  new_hosts nodea nodeb
  write_job 30
  expect_exit 0 train nodea nodeb
  expect_contains "$output" "4 ranks on 2 hosts"
  expect_equal "$(tail -n 1 <<<"$output")" "$(hash_of_one_rank)"
}

Eight_ranks_on_four_hosts_train_to_the_weights_of_one() {
  new_hosts nodea nodeb nodec noded
  write_job 10
  expect_exit 0 train nodea nodeb nodec noded
  expect_contains "$output" "8 ranks on 4 hosts"
  expect_equal "$(tail -n 1 <<<"$output")" "$(hash_of_one_rank)"
}

# After twenty steps the cable is 50 ms longer: every message takes that long. Nobody may think that a rank is gone.
Latency_of_50_ms_is_no_reason_for_an_alarm() {
  [ -w /dev/net/tun ] || { echo "skipped: /dev/net/tun may not be opened: no longer cable"; return; }
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=10 write_job 36
  train_in_background nodea nodeb
  slow_down nodeb 50
  wait "$launcher" || fail "exit code $?: $(cat said)"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
  expect_equal "$(grep -c 'lockstep: ' said)" 0
}

Ranks_leave_when_a_host_is_cut_off() {
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=2 write_job 1000000
  train_in_background nodea nodeb
  cut_off nodeb
  wait_for 20 no_rank_on nodea
  wait_for 20 no_rank_on nodeb
  expect_contains "$(cat said)" "waited 2 s for the other ranks"
}

Ranks_leave_when_a_host_is_killed() {
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=2 write_job 1000000
  train_in_background nodea nodeb
  kill_host nodeb
  wait_for 20 no_rank_on nodea
  no_rank_on nodeb || fail "a dead host has ranks"
}

: "${LOCKSTEP_PROGRAM:?set it to the path of lockstep}"
enter_world "$@"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
run_tests "$@"
