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

Eight_ranks_on_four_hosts_train_to_the_weights_of_one() {
  new_hosts nodea nodeb nodec noded
  write_job 10
  expect_exit 0 train nodea nodeb nodec noded
  expect_contains "$output" "8 ranks on 4 hosts"
  expect_equal "$(tail -n 1 <<<"$output")" "$(hash_of_one_rank)"
  rm -r run
  sed -i 's/^parallel: .*/parallel: {device: cpu, strategy: hogwild, determinism: off}/' job.yaml
  expect_exit 2 train nodea nodeb
  expect_contains "$output" "2 of 4 ranks are on nodea"  # by MPI_Comm_split_type
}

# After twenty steps the cable is 50 ms longer: every message takes that long. Nobody may think that a rank is gone.
Latency_of_50_ms_is_no_reason_for_an_alarm() {
  [ -w /dev/net/tun ] || skip "/dev/net/tun may not be opened: no longer cable"
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=10 write_job 36
  train_in_background nodea nodeb
  slow_down nodeb 50 || fail "no longer cable"
  wait "$launcher" || fail "exit code $?: $(cat said)"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
  expect_lacks "$(cat said)" "verdict"
}

# expect_ranks_to_leave cut_off|kill_host: what strikes the second host.
expect_ranks_to_leave() {
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=3 write_job 1000000
  train_in_background nodea nodeb
  "$1" nodeb
  wait_for 20 no_rank_on nodea
  wait_for 20 no_rank_on nodeb
  wait_for 20 grep -q 'lockstep: verdict: .*nodeb' said  # mpirun passes it on when it sees fit
}

Ranks_leave_when_a_host_is_cut_off() { expect_ranks_to_leave cut_off; }

Ranks_leave_when_a_host_is_killed() { expect_ranks_to_leave kill_host; }

# TCP sends again what got lost: a short cut is a pause.
A_host_that_comes_back_goes_on_with_the_same_bits() {
  new_hosts nodea nodeb
  TIMEOUT_SECONDS=30 write_job 600  # long enough for a beat after the cut
  train_in_background nodea nodeb
  cut_off nodeb
  wait_for 20 grep -q 'lockstep: rank [23] on nodeb .* is silent' said
  rejoin nodeb
  wait "$launcher" || fail "exit code $?: $(cat said)"
  expect_contains "$(cat said)" "is back after"
  expect_lacks "$(cat said)" "verdict"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
}

# doctor HOSTS...: with one rank on each, started on the first one, on the networks that MPI chooses by itself.
doctor() {
  printf '%s slots=1\n' "$@" >hostfile
  on "$1" mpirun --hostfile hostfile -np $# "$LOCKSTEP_PROGRAM" doctor job.yaml
}

Doctor_finds_nothing_wrong_with_healthy_hosts() {
  new_hosts nodea nodeb
  write_job 10
  expect_exit 0 doctor nodea nodeb
  expect_contains "$output" "all is well"
  expect_contains "$output" "nodeb"
}

Doctor_names_each_host_that_is_wrong_and_how_to_mend_it() {
  local host
  new_hosts nodea nodeb nodec
  write_job 10
  { cat "$LOCKSTEP_PROGRAM" && echo other; } >program-of-nodec && chmod +x program-of-nodec
  on nodec mount --bind program-of-nodec "$LOCKSTEP_PROGRAM"  # under the same name
  mkdir -p run
  for host in nodeb nodec; do on "$host" mount -t tmpfs tmpfs run; done
  expect_exit 69 doctor nodea nodeb nodec
  expect_contains "$output" "the program is "
  expect_contains "$output" "on rank 2 (nodec)"
  expect_contains "$output" "install the same build on all hosts"
  expect_contains "$output" "nodeb does not see the run directory"
  expect_contains "$output" "nodec does not see the run directory"
  expect_equal "$(grep -c ' fix: ' <<<"$output")" 3
}

Doctor_ends_with_the_cause_where_hosts_cannot_connect() {
  new_hosts nodea nodeb nodec
  TIMEOUT_SECONDS=6 write_job 10
  on nodeb ip neigh replace "$(awk '$2 == "nodec" { print $1 }' /etc/hosts)" lladdr 02:00:00:00:00:01 dev eth0
  doctor nodea nodeb nodec >said 2>&1 && fail "$(cat said)"
  expect_contains "$(cat said)" "all have come, but cannot reach each other: open TCP between the hosts"
  expect_exit 69 "$LOCKSTEP_PROGRAM" doctor --log said
  expect_contains "$output" "closed ports, or the wrong network"
}

Doctor_says_of_a_host_without_an_answer_what_mpirun_said() {
  new_hosts nodea
  write_job 10
  doctor nodea nosuch >said 2>&1 && fail "there is no such host: $(cat said)"
  expect_exit 69 "$LOCKSTEP_PROGRAM" doctor --log said
  expect_contains "$output" "mpirun could not start its daemon on another host"
}

take_over() { on nodea mpirun --host nodeb "$LOCKSTEP_PROGRAM" doctor --take-over run; }

Doctor_frees_a_lock_only_when_its_job_is_gone() {
  new_hosts nodea nodeb
  write_job 1000000
  on nodeb "$LOCKSTEP_PROGRAM" train job.yaml >said 2>&1 &
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  cp run/lock held
  expect_exit 74 take_over
  expect_contains "$output" "it is still running"
  kill -KILL $! "$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' run/lock)" 2>/dev/null
  wait_for 20 no_rank_on nodeb
  expect_same_file run/lock held
  expect_exit 0 take_over
  expect_contains "$output" "freed; job"
  expect_exit 0 take_over
  expect_contains "$output" "no job holds it"
}

# lose_a_host HOST LOST KEY=VALUE...: a power failure on one of two hosts with two ranks each, under launch/run on another. Each host
# has a boot of its own.
lose_a_host() {
  local host
  new_hosts nodea nodeb nodec
  for host in nodea nodeb nodec; do
    echo "$host" >"boot-$host"
    on "$host" mount --bind "boot-$host" /proc/sys/kernel/random/boot_id
  done
  TIMEOUT_SECONDS=3 write_job 80
  sed -i 's/checkpoint_every_steps: 0/checkpoint_every_steps: 10/' job.yaml
  printf '%s slots=2\n' nodea nodeb >hostfile
  PROGRAM=$LOCKSTEP_PROGRAM on "$1" "$repo/launch/run" --restarts 2 --hostfile hostfile train job.yaml "${@:3}" >said 2>&1 &
  launcher=$!
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  kill_host "$2"
  wait "$launcher" || fail "exit code $?: $(cat said)"
  expect_contains "$(cat said)" "going on from step"
  expect_equal "$(grep -c '^weights sha256' said)" 1
}

# The ranks that are left go on from the newest checkpoint.
Launch_run_goes_on_without_a_host_that_died() {
  lose_a_host nodea nodeb
  expect_contains "$(cat said)" "hosts that answer: nodea; 2 of 4 ranks"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
}

# It has left its lock in the run. Open MPI gives its own host the first ranks, if that has some. TCP tells mpirun of the dead host.
Launch_run_goes_on_without_the_host_of_rank_0() {
  export OMPI_MCA_oob_tcp_keepalive_time=1 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=1
  lose_a_host nodec nodea
  expect_contains "$(cat said)" "hosts that answer: nodeb; 2 of 4 ranks"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
}

# Four stages come out on no three ranks: all go on on one host. A batch of each rank: launch/run_restarts_test.sh. TCP tells
# mpirun of the dead host, before launch/run loses its patience.
Launch_run_keeps_a_pipeline_whole() {
  export OMPI_MCA_oob_tcp_keepalive_time=1 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=1
  lose_a_host nodea nodeb parallel.strategy=pipeline
  expect_contains "$(cat said)" "hosts that answer: nodea; 4 of 4 ranks"
  expect_equal "$(tail -n 1 said)" "$(hash_of_one_rank)"
}

: "${LOCKSTEP_PROGRAM:?set it to the path of lockstep}"
enter_world "$@"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
run_tests "$@"
