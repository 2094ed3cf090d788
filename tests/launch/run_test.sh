#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/run: the command it makes, with a stand-in for mpirun; and real ranks that are killed. Needs $LOCKSTEP_PROGRAM.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

stand_in() {
  mkdir -p bin
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}

# make_world CORES: an mpirun that writes down how it was called and ends as the file "codes" says, one line a start.
make_world() {
  stand_in mpirun '[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.1.4"; exit; }
    echo "$*" >>calls; code=$(head -n 1 codes); sed -i 1d codes; [ ! -f words ] || cat words >&2; exit "${code:-0}"'
  stand_in nproc "echo $1"
  stand_in nvidia-smi 'for ((i = 0; i < ${GPUS:-0}; ++i)); do echo "GPU $i: NVIDIA H100 (UUID: GPU-$i)"; done'
  touch codes
  export PATH=$PWD/bin:$PATH PROGRAM=$program
  unset OMPI_MCA_btl_tcp_if_include
}

Run_prints_the_command_that_it_runs() {
  make_world 8
  expect_exit 0 "$repo/launch/run" -np 4 train job.yaml "run.dir=my run"
  expect_contains "$output" "launch/run: mpirun -np 4 --bind-to core"
  expect_contains "$output" 'train job.yaml run.dir=my\ run'
  expect_contains "$(cat calls)" "-np 4 --bind-to core"
  expect_exit 0 "$repo/launch/run" --dry-run -np 4 train job.yaml
  expect_equal "$(wc -l <calls)" 1
}

Run_binds_as_cores_threads_and_gpus_allow() {
  make_world 8
  expect_exit 0 "$repo/launch/run" --dry-run train job.yaml
  expect_contains "$output" "mpirun -np 8 --bind-to core"
  expect_exit 0 "$repo/launch/run" --dry-run train job.yaml parallel.threads=4
  expect_contains "$output" "mpirun -np 2 --map-by slot:PE=4 --bind-to core"
  expect_exit 0 "$repo/launch/run" --dry-run -np 9 train job.yaml
  expect_contains "$output" "--bind-to none --oversubscribe"
  GPUS=4 expect_exit 0 "$repo/launch/run" --dry-run train job.yaml
  expect_contains "$output" "mpirun -np 4 --bind-to numa"
}

Run_takes_ranks_and_hosts_from_a_hostfile() {
  make_world 8
  printf '# a comment\nlocalhost slots=2\n\n' >hosts
  expect_exit 0 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_contains "$output" "mpirun -np 2 --hostfile hosts --bind-to core"
  expect_exit 66 "$repo/launch/run" --hostfile nosuch train job.yaml
}

Run_restarts_after_a_lost_rank_and_tells_the_story() {
  make_world 8
  printf '71\n137\n0\n' >codes
  expect_exit 0 "$repo/launch/run" -np 2 --restarts 2 train job.yaml
  expect_equal "$(wc -l <calls)" 3
  expect_contains "$output" "a rank was lost (exit code 137): restart 2 of 2"
  printf '71\n71\n' >codes
  expect_exit 71 "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  expect_equal "$(wc -l <calls)" 5
}

Run_with_a_timeout_ends_for_its_reader_when_the_job_ends() {
  make_world 8
  local begun=$SECONDS
  "$repo/launch/run" --timeout 300 -np 2 train job.yaml 2>&1 | cat >/dev/null
  [ $((SECONDS - begun)) -lt 60 ] || fail "whoever read its output waited $((SECONDS - begun)) s"
}

Run_tells_of_a_killed_launcher_in_its_own_words_alone() {
  make_world 8
  stand_in mpirun 'kill -KILL $$'
  expect_exit 137 "$repo/launch/run" -np 2 train job.yaml
  expect_lacks "$output" "line "
  expect_lacks "$output" Killed
}

Run_restarts_nothing_that_would_end_the_same_way() {
  local code
  make_world 8
  for code in 2 65 66 69 70 74 75; do
    rm -f calls
    echo "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 3 train job.yaml
    expect_equal "$(wc -l <calls)" 1
  done
}

Run_says_in_a_line_why_mpirun_failed() {
  make_world 8
  echo "There are not enough slots available in the system to satisfy the 4" >words
  echo 1 >codes
  expect_exit 1 "$repo/launch/run" -np 4 train job.yaml
  expect_contains "$output" "more ranks than slots"
  expect_contains "$output" "fix: mpirun --oversubscribe"
}

Run_refuses_a_wrong_command_line() {
  make_world 8
  expect_exit 2 "$repo/launch/run" --nosuch train job.yaml
  expect_exit 2 "$repo/launch/run" -np 0 train job.yaml
  expect_exit 2 "$repo/launch/run" --restarts x train job.yaml
  expect_exit 2 "$repo/launch/run" -np 2
  MPIRUN=nowhere expect_exit 69 "$repo/launch/run" -np 2 train job.yaml
  PROGRAM=/nowhere expect_exit 69 "$repo/launch/run" -np 2 train job.yaml
}

write_job() {
  cat >job.yaml <<'END'
model: net
data: {set: synthetic, train_samples: 1100, test_samples: 100, global_batch: 110}
train: {epochs: 100000, seed: 7, optimizer: {kind: sgd, lr: 0.02, momentum: 0.5}}
parallel: {device: cpu, grain: 11, timeout_seconds: 20}
run: {dir: run, checkpoint_every_steps: 10, log_every_steps: 1}
END
}

Mpirun_trains_to_the_weights_of_one_process() {
  skip_without mpirun
  write_job
  expect_exit 0 mpirun -np 3 "$program" train job.yaml train.max_steps=20
  expect_contains "$output" "3 ranks on 1 host"
  expect_equal "$(tail -n 1 <<<"$output")" "$("$program" train job.yaml run.dir=alone train.max_steps=20 | tail -n 1)"
}

# a_rank: the process of some rank of the run, by its launcher's environment.
# shellcheck disable=SC2046  # one word each
a_rank() { grep -lzs "^OMPI_COMM_WORLD_RANK=1" $(grep -lzsx "PWD=$PWD" /proc/[0-9]*/environ) 2>/dev/null | head -n 1 | cut -d / -f 3; }

Run_goes_on_after_a_killed_rank_to_the_same_weights() {
  skip_without mpirun
  export PROGRAM=$program
  write_job
  "$repo/launch/run" -np 2 --restarts 2 train job.yaml train.max_steps=200 >said 2>&1 &
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  kill -KILL "$(a_rank)"
  wait $! || fail "exit code $?: $(cat said)"
  expect_contains "$(cat said)" "restart 1 of 2"
  expect_contains "$(cat said)" "going on from step"
  expect_equal "$(tail -n 1 said)" "$("$program" train job.yaml run.dir=calm train.max_steps=200 | tail -n 1)"
}

Run_stops_and_saves_when_it_is_told_to() {
  skip_without mpirun
  export PROGRAM=$program
  write_job
  "$repo/launch/run" -np 2 --restarts 2 train job.yaml >said 2>&1 &
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  kill -TERM $!
  wait $!
  expect_equal $? 75
  expect_lacks "$(cat said)" "restart"
}

Run_saves_at_its_timeout() {
  skip_without mpirun
  export PROGRAM=$program
  write_job
  expect_exit 75 "$repo/launch/run" -np 2 --timeout 3 train job.yaml
}

run_tests "$@"
