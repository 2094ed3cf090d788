#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/run --restarts: ranks and hosts that are lost, and hosts with wrong numbers, with a stand-in for mpirun; and a real rank that is
# killed. Needs $LOCKSTEP_PROGRAM.
# shellcheck disable=SC2016,SC2154,SC2317  # the stand-ins expand their own variables; functions are called by launch/run and see its own
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=run_world.sh
source "$(dirname "${BASH_SOURCE[0]}")/run_world.sh"

Run_restarts_after_a_lost_rank_and_tells_the_story() {
  make_world 8
  export TMPDIR=$PWD
  sleep() { [ "$BASHPID" != $$ ] || echo "$1" >>pauses; command sleep 0.02; }
  timeout() { command timeout "$@"; echo "$? $*" >>waits; }
  export -f sleep timeout
  printf '71\n137\n0\n' >codes
  expect_exit 0 "$repo/launch/run" -np 2 --restarts 2 train job.yaml
  expect_equal "$(wc -l <calls)" 3
  expect_contains "$output" "a rank was lost (exit code 71): restart 1 of 2, from the newest checkpoint"
  expect_contains "$output" "a rank was lost (exit code 137): restart 2 of 2"
  expect_equal "$(xargs <pauses)" "1 1"
  expect_equal "$(sed 's/pid=[0-9]*/pid=N/' waits | sort -u)" "0 5 tail -s 0.02 --pid=N -f /dev/null"
  expect_equal "$(echo tmp.*)" "tmp.*"
  printf '71\n71\n' >codes
  expect_exit 71 "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  expect_equal "$(wc -l <calls)" 5
  printf '128\n75\n' >codes
  expect_exit 75 "$repo/launch/run" -np 2 --restarts 2 train job.yaml
  expect_equal "$(wc -l <calls)" 7
}

# Its mpiexec ends with 9 for a rank that was killed; Open MPI's never does.
Run_knows_a_killed_rank_by_the_exit_code_of_mpich() {
  local code
  make_world 8
  for code in 4 9 63; do
    printf '%s\n0\n' "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
  sed -i 's/Open MPI/HYDRA build details/' bin/mpirun
  for code in 4 9 63; do
    printf '%s\n0\n' "$code" >codes
    expect_says 0 "a rank was lost (exit code $code): restart 1 of 1" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
  for code in 1 2 3 64; do
    printf '%s\n0\n' "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
}

# lose_hosts KEY=VALUE...: six ranks on three hosts; then nodea answers, nodeb does not, and nodec lets the agent wait.
lose_hosts() {
  make_world 8
  stand_in getent ''
  stand_in agent 'case $1 in nodea | noded) ;; nodeb) echo grumble; echo grumble >&2; exit 255 ;; *) exec sleep 60 ;; esac'
  timeout() { echo "$1" >>limits; command timeout "$([[ $* == *nodec* ]] && echo 0.5 || echo 30)" "${@:2}"; }
  export -f timeout
  export OMPI_MCA_plm_rsh_agent=$PWD/bin/agent
  printf '71\n0\n' >codes
  [ -e hosts ] || printf '%s slots=2\n' nodea nodeb nodec >hosts
  expect_exit 0 "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml "$@"
  expect_equal "$(wc -l <calls)" 2
  expect_lacks "$output" grumble
  expect_lacks "$output" "No such file"
  grep -qx 10 limits || fail "a dead host is waited for: $(cat limits)"
}

Run_goes_on_with_fewer_ranks_on_the_hosts_that_answer() {
  lose_hosts
  expect_contains "$output" "hosts that answer: nodea; 2 of 6 ranks"
  expect_contains "$(tail -n 1 calls)" "-np 2 "
  expect_contains "$(tail -n 1 calls)" "--bind-to core"
  expect_lacks "$(head -n 1 calls)" LOCKSTEP_LOST_HOSTS
  expect_contains "$(tail -n 1 calls)" " -x LOCKSTEP_LOST_HOSTS "
  expect_equal "$(tail -n 1 lost)" "nodeb nodec"
}

# Ranks, the lock and status.json have the name.
Run_knows_a_host_by_the_name_that_the_resolver_has_for_its_address() {
  find_wrong_numbers '"nodeb.example"'
  stand_in getent '[ "$*" != "hosts 198.51.100.7" ] || echo "198.51.100.7       nodeb.cluster nodex"'
  printf '%s slots=2\n' nodea 198.51.100.7 >hosts
  expect_says 0 "without 198.51.100.7, where numbers were wrong" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_contains "$output" "hosts that answer: nodea; 2 of 4 ranks"
  printf '71\n0\n' >codes
  stand_in agent '[ "$1" != 198.51.100.7 ]'
  expect_says 0 "hosts that answer: nodea; 2 of 4 ranks" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_equal "$(tail -n 1 lost)" "198.51.100.7 198.51.100.7 nodeb.cluster nodex"
}

# The first host's name is known once the last host is asked for.
Run_asks_for_the_names_of_all_hosts_at_once() {
  find_wrong_numbers '"first.example", "nodeb"'
  mkfifo last
  stand_in getent 'echo "$*" >>asked
    case "$*" in "hosts nodea") read -r address <last && echo "$address first.example" ;; "hosts nodec") echo 198.51.100.1 >last ;; esac'
  expect_says 0 "without nodea nodeb, where numbers were wrong" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_equal "$(grep ^hosts asked | sort | xargs)" "hosts nodea hosts nodeb hosts nodec"
}

# Ports, keys and other options of ssh come in these two.
Run_asks_hosts_with_the_agent_and_arguments_that_mpirun_takes() {
  make_world 8
  stand_in getent ''
  stand_in agent 'echo "$*" >>asked'
  printf '71\n0\n' >codes
  echo 'nodea slots=2' >hosts
  export OMPI_MCA_plm_rsh_agent="$PWD/bin/agent -p 2222 : rsh" OMPI_MCA_plm_rsh_args='-o BatchMode=yes'
  expect_says 0 "hosts that answer: nodea; 2 of 2 ranks" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_equal "$(cat asked)" "-p 2222 -o BatchMode=yes nodea true"
}

Run_ends_where_no_host_answers_any_more() {
  make_world 8
  stand_in getent ''
  stand_in agent 'exit 255'
  echo 71 >codes
  echo 'nodeb slots=2' >hosts
  OMPI_MCA_plm_rsh_agent=$PWD/bin/agent expect_says 71 "no host of hosts answers" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

# find_wrong_numbers HOSTS: on three hosts that answer; the run's status.json names these.
find_wrong_numbers() {
  make_world 8
  stand_in getent ''
  stand_in agent ''
  mkdir run && printf '{\n "version": 1,\n "state": "failed",\n "step": 17,\n "exclude_hosts": [%s]\n}\n' "$1" >run/status.json
  export OMPI_MCA_plm_rsh_agent=$PWD/bin/agent
  printf '72\n0\n' >codes
  printf '%s slots=2\n' nodea nodeb nodec >hosts
}

Run_leaves_out_a_host_whose_numbers_are_wrong() {
  find_wrong_numbers $'\n  "nodeb.example"\n '
  expect_says 0 "without nodeb, where numbers were wrong" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_contains "$output" "hosts that answer: nodea nodec; 4 of 6 ranks"
  rm -r run && find_wrong_numbers '"nodeb"' && printf '71\n0\n' >codes
  expect_says 0 "hosts that answer: nodea nodeb nodec; 6 of 6 ranks" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

Run_leaves_out_this_host_under_the_name_that_the_hostfile_has() {
  find_wrong_numbers "\"$(hostname)\""
  printf 'nodea slots=2\nlocalhost slots=1\n127.0.0.1 slots=1\n' >hosts
  expect_says 0 "without 127.0.0.1 localhost, where numbers were wrong" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_contains "$output" "hosts that answer: nodea; 2 of 4 ranks"
  rm -r run && find_wrong_numbers '"nodex"'
  printf 'nodea slots=2\nlocalhost slots=2\n' >hosts
  expect_exit 72 "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

Run_does_not_go_on_after_wrong_numbers_of_a_host_that_cannot_be_told() {
  local names
  for names in '' '"nodex"' '"nodea", "nodex"' '"nodea", "nodeb", "nodec"'; do
    rm -rf run calls
    find_wrong_numbers "$names"
    expect_exit 72 "$repo/launch/run" --hostfile hosts --restarts 3 train job.yaml
    expect_equal "$(wc -l <calls)" 1
  done
}

Run_knows_this_host_by_its_addresses() {
  make_world 8
  stand_in getent ''
  stand_in hostname 'if [ "$1" = -I ]; then echo grumble >&2; echo "10.9.0.1 fd00::1 "; else echo nodea; fi'
  stand_in agent 'echo "$1" >>asked; exit 255'
  printf '%s slots=1\n' 127.0.0.1 10.9.0.1 ::1 nodea.example 10.9.0.11 >hosts
  printf '71\n0\n' >codes
  OMPI_MCA_plm_rsh_agent=$PWD/bin/agent expect_says 0 "hosts that answer: 127.0.0.1 10.9.0.1 ::1 nodea.example; 4 of 5 ranks" \
    "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_equal "$(cat asked)" 10.9.0.11
  expect_lacks "$output" grumble
}

Run_keeps_the_ranks_of_a_job_that_needs_their_number() {
  local key
  for key in parallel.strategy=pipeline data.per_rank_batch=11; do
    rm -f calls
    lose_hosts "$key"
    expect_contains "$output" "hosts that answer: nodea; 6 of 6 ranks"
    expect_contains "$(tail -n 1 calls)" "-np 6 "
    expect_contains "$(head -n 1 calls)" "--bind-to core"
    expect_contains "$(tail -n 1 calls)" "--bind-to none --oversubscribe"
    expect_equal "$(tail -n 1 hostfiles)" "nodea slots=6"
  done
}

Run_goes_on_with_hogwild_on_one_host() {
  printf 'nodea slots=1\nnodeb slots=4\nnoded slots=3\n' >hosts
  lose_hosts parallel.strategy=hogwild parallel.determinism=off
  expect_contains "$output" "hosts that answer: noded; 8 of 8 ranks"
  expect_equal "$(tail -n 1 hostfiles)" "noded slots=8"
}

# Its watcher is then killed before it has traps of its own.
Run_keeps_its_files_where_mpirun_ends_at_once() {
  make_world 8
  stand_in mpirun '[ "$1" = --version ] || exit 71; echo "mpirun (Open MPI) 4.1.4"'
  echo 'localhost slots=1' >hosts
  for _ in {1..8}; do
    expect_exit 71 "$repo/launch/run" --hostfile hosts --restarts 2 eval run
    expect_lacks "$output" "No such file"
    expect_contains "$output" "restart 2 of 2"
  done
}

Run_restarts_nothing_that_would_end_the_same_way() {
  local code
  make_world 8
  for code in 1 2 65 66 69 70 72 74 75 127; do
    rm -f calls
    echo "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 3 train job.yaml
    expect_equal "$(wc -l <calls)" 1
  done
}

# a_rank: the process of some rank of the run, by its launcher's environment.
# shellcheck disable=SC2046  # one word each
a_rank() { grep -lzs "^OMPI_COMM_WORLD_RANK=1" $(grep -lzsx "PWD=$PWD" /proc/[0-9]*/environ) 2>/dev/null | head -n 1 | cut -d / -f 3; }

Run_goes_on_after_a_killed_rank_to_the_same_weights() {
  skip_without mpirun
  export PROGRAM=$program
  write_job 10
  "$repo/launch/run" -np 2 --restarts 2 train job.yaml train.max_steps=200 >said 2>&1 &
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  kill -KILL "$(a_rank)"
  wait $! || fail "exit code $?: $(cat said)"
  expect_contains "$(cat said)" "restart 1 of 2"
  expect_contains "$(cat said)" "going on from step"
  expect_equal "$(tail -n 1 said)" "$("$program" train job.yaml run.dir=calm train.max_steps=200 | tail -n 1)"
}

run_tests "$@"
