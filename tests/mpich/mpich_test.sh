#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The program built against MPICH, under MPICH's mpiexec. Needs $LOCKSTEP_WITH_MPICH, $LOCKSTEP_MPIEXEC and $LOCKSTEP_PROGRAM.
# shellcheck source-path=SCRIPTDIR source=../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/harness.sh"

Mpich_trains_to_the_weights_of_open_mpi() {
  write_job 0
  expect_says 0 "2 ranks on 1 host" "$LOCKSTEP_MPIEXEC" -n 2 "$LOCKSTEP_WITH_MPICH" train job.yaml train.epochs=1 run.dir=two
  expect_equal "$(tail -n 1 <<<"$output")" "$("$LOCKSTEP_PROGRAM" train job.yaml train.epochs=1 run.dir=one | tail -n 1)"
}

Mpich_is_what_the_doctor_sees_and_finds_well() {
  expect_says 0 MPICH "$LOCKSTEP_MPIEXEC" -n 2 "$LOCKSTEP_WITH_MPICH" doctor
}

Launch_run_starts_mpiexec() {
  write_job 0
  PROGRAM=$LOCKSTEP_WITH_MPICH MPIRUN=$LOCKSTEP_MPIEXEC expect_says 0 "2 ranks on 1 host" "$repo/launch/run" -np 2 train job.yaml train.epochs=1 run.dir=two
}

# The launcher of one MPI and the library of the other: each process would train alone, and all into one directory.
Launcher_and_library_of_two_makes_are_refused() {
  skip_without mpirun
  expect_says 69 "the launcher started 2 processes, but MPI on" mpirun -np 2 "$LOCKSTEP_WITH_MPICH" doctor
  expect_says 69 "the launcher started 2 processes, but MPI on" "$LOCKSTEP_MPIEXEC" -n 2 "$LOCKSTEP_PROGRAM" doctor
}

run_tests "$@"
