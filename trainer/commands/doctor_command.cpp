// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep doctor [JOB.yaml] [key=value ...] [--json] | --log FILE | --take-over RUN
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/reports/run_history.hpp"
#include "trainer/tools/doctor.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr const char* kDoctorFooter = R"(Examples:
  lockstep doctor
  mpirun -np 2 lockstep doctor launch/jobs/mnist.yaml
  mpirun --hostfile hosts lockstep doctor launch/jobs/mnist.yaml
  mpirun -np 64 lockstep train JOB.yaml 2>&1 | tee said; lockstep doctor --log said

Start it just as the run: then it sees what the run will see, on every host. A table
shows each rank, its host, device, cores or GPU, memory and versions; then a line for
each check, and how to mend what is wrong, with the ranks and hosts where it is. All
ranks must have one program, MPI and GPU driver; with a job also one network and one
set of data. Before every run the quick ones of these checks are made, and only what
is wrong is said. Where mpirun itself fails, --log says why.

Exit code: 0 all is well, 69 something is not.

--json prints one object:
  {"format": 1, "ok": true, "ranks": [{"rank": 0, "host": ..., "cores": [...], ...}],
   "checks": [{"id": "disk", "ok": true, "findings": [{"what", "fix"}]}],
   "all_reduce": [{"bytes", "seconds"}]}
Values of secrets in the environment are masked.)";

struct Options {
  std::string job, log, locked_run, hostfile;
  std::vector<std::string> overrides;
  bool json = false;
};

int exit_code(bool healthy) {
  return static_cast<int>(healthy ? ExitCode::kOk : ExitCode::kDeviceUnavailable);
}

template <typename Findings>
void show(const Findings& findings, bool json) {
  if (json)
    print_json(to_json(findings));
  else
    print("{}", fold_lines(to_text(findings, output_terminal().unicode), output_columns()));
}

std::string log_text(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return std::string(as_text(Env::posix().read(file)));
}

int examine_log(const Options& options) {
  const auto findings = read_launch_log(log_text(options.log));
  show(findings, options.json);
  return exit_code(findings.empty());
}

/// Frees a lock on the host that it names: there it is seen whether the process still runs.
int take_over(const std::string& run_dir) {
  Env& env = Env::posix();
  if (!has_parts_of_run(env, run_dir)) throw MissingDataError(why_no_run(env, run_dir));
  const std::string lock = run_dir + "/lock";
  if (!env.exists(lock) || env.read_first(lock, 1).empty()) {
    print("{}: no job holds it\n", run_dir);
    return 0;
  }
  const auto owner = lock_owner(env, run_dir);
  const RunLock taken_over(env, run_dir, "lockstep doctor --take-over", {});
  print("{}: freed; {}\n", run_dir, owner ? "job " + owner->job + " is gone" : "its lock was damaged");
  return 0;
}

int list_hosts(const std::string& hostfile) {
  for (const ListedHost& host : read_hostfile(hostfile)) print("{} {}\n", host.name, host.slots);
  return 0;
}

int examine_ranks(const Options& options) {
  const bool has_job = !options.job.empty();
  const Job job = has_job ? load_job(options.job, options.overrides) : Job{};
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    const Diagnosis diagnosis = diagnose(comm, job, has_job);
    if (comm.rank() == 0) show(diagnosis, options.json);
    return exit_code(diagnosis.healthy());
  });
}

int examine(const Options& options) {
  if (!options.locked_run.empty()) return take_over(options.locked_run);
  if (!options.log.empty()) return examine_log(options);
  return options.hostfile.empty() ? examine_ranks(options) : list_hosts(options.hostfile);
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("doctor", "Find faults in how ranks are started, and their cures");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "Job file of the run; default: no data are compared");
  command->add_option("overrides", options->overrides, "key=value, as for train");
  command->add_option("--log", options->log, "Log of a launcher; '-': standard input")->excludes("job");
  command->add_option("--take-over", options->locked_run,
                      "A run directory whose lock a job on this host left behind: frees it if that job is "
                      "gone; mpirun --host HOST starts it on another");
  command->add_option("--list-hosts", options->hostfile)->group("");  // for launch/run
  command->add_flag("--json", options->json, "For programs");
  command->footer(kDoctorFooter);
  on_choice(*command, action, [=] { return examine(*options); });
}

}  // namespace lockstep
