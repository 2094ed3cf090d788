#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/slurm/train.sbatch, with stand-ins for srun, mpirun, scontrol and the program.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# A launcher that trains until it is told to stop, for 20 s at most, and then takes a moment to save.
make_world() {
  stand_in mpirun 'echo "mpirun $*" >>calls; stop() { echo "saving after $1" >>calls; sleep 0.2; exit 75; }; trap "stop USR1" USR1; trap "stop TERM" TERM
    echo $$ >started; for _ in {1..400}; do sleep 0.05; done'
  stand_in srun '[ "$1" = --mpi=list ] && { echo "${MPI_TYPES:-none}" >&2; exit 0; }; echo "srun $*" >>calls; exit "${SRUN_EXIT:-0}"'
  stand_in scontrol 'echo "scontrol $*" >>calls'
  stand_in lockstep 'exit 0'
  touch job.yaml
  export PROGRAM=bin/lockstep SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=42 SLURM_NTASKS=3
  unset LAUNCHER REQUEUES SLURM_CPUS_PER_TASK SLURM_ARRAY_TASK_ID SLURM_ARRAY_JOB_ID SLURM_RESTART_COUNT
}

# run_until_started: the job in the background, its pid in $batch.
run_until_started() {
  "$repo/launch/slurm/train.sbatch" job.yaml run.dir=x >said 2>errors &
  batch=$!
  wait_for 10 test -s started
}

expect_end() {
  local code=0
  wait "$batch" || code=$?
  expect_equal "$code" "$1"
}

# warn: Slurm's warning comes once the ranks train; they begin to save.
warn() {
  run_until_started
  kill -USR1 "$batch"
  wait_for 10 grep -q "saving after USR1" calls
}

Slurm_job_passes_usr1_on_waits_for_the_save_and_requeues() {
  make_world && warn
  expect_end 75
  expect_equal "$(cat calls)" $'mpirun -np 3 bin/lockstep train job.yaml run.dir=x\nsaving after USR1\nscontrol requeue 42'
  expect_equal "$(cat said errors)" "train.sbatch: USR1 received, asking the ranks to save and stop
train.sbatch: saved; queueing job 42 again"
}

Slurm_job_takes_only_whole_numbers_from_its_environment() {
  local name value
  make_world
  export LAUNCHER=srun
  for name in SLURM_JOB_ID SLURM_NTASKS SLURM_CPUS_PER_TASK SLURM_ARRAY_TASK_ID SLURM_RESTART_COUNT REQUEUES; do
    for value in -1 1e3 'x[$(touch executed)0]' --version '1 2'; do
      expect_says 2 "train.sbatch: $name is " timeout 20 env "$name=$value" "$repo/launch/slurm/train.sbatch" job.yaml
    done
  done
  expect_equal "$(SLURM_JOB_ID=12345678901 timeout 20 "$repo/launch/slurm/train.sbatch" job.yaml 2>errors)" ""
  expect_equal "$(cat errors)" "train.sbatch: SLURM_JOB_ID is 12345678901, which is not a whole number"
  expect_no_file executed
  expect_no_file calls
}

Slurm_job_passes_only_the_first_warning_on_while_it_saves() {
  local signal
  for signal in USR1 USR2; do
    rm -f calls started
    make_world && warn
    kill -"$signal" "$batch"
    expect_end 75
    expect_equal "$(grep -c requeue calls) $(grep -c 'asking the ranks' said)" "1 1"
  done
}

# Slurm itself sends TERM to the ranks: a second signal of the script's would be one too many.
Slurm_job_lets_scancel_save_without_a_signal_of_its_own_and_does_not_come_back() {
  make_world && run_until_started
  kill -TERM "$batch"
  wait_for 10 grep -q "TERM received" said
  sleep 0.3
  expect_lacks "$(cat calls)" saving
  kill -TERM "$(cat started)"
  expect_end 75
  expect_equal "$(cat calls)" $'mpirun -np 3 bin/lockstep train job.yaml run.dir=x\nsaving after TERM'
}

Slurm_job_that_is_cancelled_after_the_warning_does_not_come_back() {
  make_world
  sed -i 's/sleep 0.2/sleep 2/' bin/mpirun # it still saves when it is cancelled
  warn
  kill -TERM "$batch"
  expect_end 75
  expect_contains "$(cat said)" "TERM received"
  expect_equal "$(cat calls)" $'mpirun -np 3 bin/lockstep train job.yaml run.dir=x\nsaving after USR1'
}

Slurm_job_that_fails_after_a_warning_is_not_queued_again() {
  make_world
  sed -i 's/exit 75/exit 71/' bin/mpirun
  warn
  expect_end 71
  expect_lacks "$(cat calls)" requeue
}

# expect_srun CPUS PROGRAM WORDS...: it trains that by srun.
expect_srun() {
  expect_exit 0 "$repo/launch/slurm/train.sbatch" "${@:3}"
  expect_equal "$(tail -n 1 calls)" "srun --mpi=pmix --cpus-per-task=$1 $2 train ${*:3}"
}

Slurm_job_starts_srun_where_that_knows_pmix_and_ends_with_its_exit_code() {
  make_world
  MPI_TYPES="none pmix pmi2" expect_srun 1 bin/lockstep job.yaml train.epochs=2
  export LAUNCHER=srun
  SLURM_CPUS_PER_TASK=6 expect_srun 6 bin/lockstep job.yaml parallel.threads=6
  SRUN_EXIT=71 expect_exit 71 "$repo/launch/slurm/train.sbatch" job.yaml
  expect_lacks "$(cat calls)" requeue
  unset PROGRAM # a job by its name, and the program on the path
  expect_srun 1 "$PWD/bin/lockstep" mnist
  stand_in mpirun 'echo "mpirun $*" >>calls'
  unset SLURM_NTASKS
  LAUNCHER=mpirun expect_exit 0 "$repo/launch/slurm/train.sbatch" job.yaml
  expect_equal "$(tail -n 1 calls)" "mpirun -np 1 $PWD/bin/lockstep train job.yaml"
}

Slurm_job_of_an_array_is_a_run_of_its_own_and_comes_back_alone() {
  make_world
  export SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_JOB_ID=41
  LAUNCHER=srun expect_exit 0 "$repo/launch/slurm/train.sbatch" job.yaml train.seed=%a
  expect_contains "$(cat calls)" "train job.yaml train.seed=3 run.dir=runs/job-array-3"
  warn
  expect_end 75
  expect_contains "$(cat calls)" "scontrol requeue 41_3"
}

Slurm_job_is_not_queued_again_for_ever() {
  local most restarts
  for most in 2 ''; do
    rm -f calls started
    make_world
    export REQUEUES=$most SLURM_RESTART_COUNT=${most:-50}
    warn
    expect_end 75
    expect_lacks "$(cat calls)" requeue
    expect_contains "$(cat said)" $'stop\ntrain.sbatch: saved; not queued again after '"${most:-50} times"
    expect_equal "$(cat errors)" ""
  done
  for restarts in '' 49; do
    rm -f calls started
    make_world
    stand_in scontrol 'echo "scontrol $*" >>calls; exit 1'
    export REQUEUES='' SLURM_RESTART_COUNT=$restarts SLURM_JOB_ID=9876543210
    [ -n "$restarts" ] || REQUEUES=1
    warn
    expect_end 75
    expect_contains "$(cat calls)" "scontrol requeue 9876543210"
    expect_equal "$(cat errors)" "train.sbatch: could not requeue: submit it again, it goes on from its checkpoint"
  done
}

# Queued again, it would begin anew: each time a whole run.
Slurm_job_that_would_not_go_on_is_not_queued_again() {
  make_world
  stand_in lockstep 'echo noise >&2; [ "$*" != "validate --launch job.yaml run.resume=never" ] || echo "resume=other"'
  export LAUNCHER=srun
  expect_says 2 "leave run.resume out" "$repo/launch/slurm/train.sbatch" job.yaml run.resume=never
  expect_equal "$(REQUEUES=1 "$repo/launch/slurm/train.sbatch" job.yaml run.resume=never 2>/dev/null || echo $?)" 2
  expect_no_file calls
  REQUEUES=0 expect_exit 0 "$repo/launch/slurm/train.sbatch" job.yaml run.resume=never
  expect_contains "$(cat calls)" "train job.yaml run.resume=never"
  REQUEUES=0 SLURM_RESTART_COUNT=1 expect_exit 2 "$repo/launch/slurm/train.sbatch" job.yaml run.resume=never
  expect_exit 0 "$repo/launch/slurm/train.sbatch" job.yaml run.resume=auto
  expect_equal "$output" ""
}

Slurm_job_says_what_is_missing() {
  make_world
  export LAUNCHER=srun
  for option in -h --help; do expect_says 0 "A training run under Slurm" "$repo/launch/slurm/train.sbatch" "$option"; done
  expect_lacks "$output" "#"
  expect_exit 2 "$repo/launch/slurm/train.sbatch"
  expect_equal "$output" "train.sbatch: which job? sbatch launch/slurm/train.sbatch JOB.yaml [KEY=VALUE...]"
  expect_equal "$("$repo/launch/slurm/train.sbatch" '' 2>/dev/null || echo $?)" 2
  PROGRAM=nowhere/lockstep expect_says 69 nowhere/lockstep "$repo/launch/slurm/train.sbatch" job.yaml
  expect_equal "$(PROGRAM=nowhere/lockstep "$repo/launch/slurm/train.sbatch" job.yaml 2>/dev/null)" ""
  LAUNCHER=rsh expect_says 2 "LAUNCHER is srun or mpirun, not 'rsh'" "$repo/launch/slurm/train.sbatch" job.yaml
  expect_equal "$(LAUNCHER=rsh "$repo/launch/slurm/train.sbatch" job.yaml 2>/dev/null)" ""
  SLURM_JOB_ID='' expect_says 2 "SLURM_JOB_ID is not set" "$repo/launch/slurm/train.sbatch" job.yaml
  expect_equal "$(SLURM_JOB_ID='' "$repo/launch/slurm/train.sbatch" job.yaml 2>/dev/null)" ""
  SLURM_SUBMIT_DIR=$PWD/nowhere expect_exit 74 "$repo/launch/slurm/train.sbatch" job.yaml
  expect_no_file calls
}

Slurm_job_tells_open_mpi_of_root_and_how_long_a_save_takes() {
  make_world
  unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_odls_base_sigkill_timeout
  stand_in id 'echo 0'
  stand_in srun 'env | grep -E "AS_ROOT|sigkill" | LC_ALL=C sort | xargs >environment'
  LAUNCHER=srun expect_exit 0 "$repo/launch/slurm/train.sbatch" job.yaml
  expect_equal "$(cat environment)" "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_odls_base_sigkill_timeout=4"
}

run_tests "$@"
