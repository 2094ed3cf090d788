// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep doctor [JOB.yaml] [key=value ...] [--json] | --log FILE | --hostfile FILE
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
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
  lockstep doctor --hostfile hosts
  mpirun -np 64 lockstep train JOB.yaml 2>&1 | tee said; lockstep doctor --log said

Start it just as the run: then it sees what the run will see. A table shows each
rank, its host, device, cores or GPU, memory and versions; then a line for each
check, and how to mend what is wrong. With a job it also compares network and
data of all ranks. Before every run the quick ones of these checks are made, and
only what is wrong is said.

Exit code: 0 all is well, 69 something is not.

--json prints one object:
  {"format": 1, "ok": true, "ranks": [{"rank": 0, "host": ..., "cores": [...], ...}],
   "checks": [{"id": "shm", "ok": true, "findings": [{"what", "fix"}]}],
   "all_reduce": [{"bytes", "seconds"}]}
Values of secrets in the environment are masked.)";

struct Options {
  std::string job, log, hostfile, listed, locked_run;
  std::vector<std::string> overrides;
  bool json = false;
  // What survey_hosts() starts on other hosts; `listed` is what launch/run asks for.
  bool this_host = false;
  std::string mark;
  int answer_seconds = 0;
  std::vector<std::string> reach;
};

int exit_code(bool healthy) {
  return static_cast<int>(healthy ? ExitCode::kOk : ExitCode::kDeviceUnavailable);
}

template <typename Findings>
void show(const Findings& findings, bool json) {
  if (json) {
    print("{}\n", json_text(to_json(findings), 2));
  } else {
    print("{}", fold_lines(to_text(findings, output_terminal().unicode), output_columns()));
  }
}

std::string log_text(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  const auto bytes = Env::posix().read(file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int examine_log(const Options& options) {
  const auto findings = read_launch_log(log_text(options.log));
  show(findings, options.json);
  return exit_code(findings.empty());
}

Job job_of(const Options& options) {
  return options.job.empty() ? Job{} : load_job(options.job, options.overrides);
}

int examine_hosts(const Options& options) {
  const Diagnosis diagnosis = survey_hosts(read_hostfile(options.hostfile), job_of(options));
  show(diagnosis, options.json);
  return exit_code(diagnosis.healthy());
}

/// For launch/run, which takes no word of a hostfile unchecked.
int list_hosts(const std::string& hostfile) {
  for (const ListedHost& host : read_hostfile(hostfile)) print("{} {}\n", host.name, host.slots);
  return 0;
}

int examine_ranks(const Options& options) {
  hash_program_in_advance();
  const bool has_job = !options.job.empty();
  const Job job = job_of(options);
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    const Diagnosis diagnosis = diagnose(comm, job, has_job);
    if (comm.rank() == 0) show(diagnosis, options.json);
    return exit_code(diagnosis.healthy());
  });
}

int examine(const Options& options) {
  if (options.this_host) {
    print("{}\n", view_of_this_host(options.mark));
  } else if (options.answer_seconds > 0) {
    answer_on_a_port(options.answer_seconds);
  } else if (!options.reach.empty()) {
    print("{}", try_to_reach(options.reach));
  } else if (!options.locked_run.empty()) {
    print("{}\n", take_over_lock(options.locked_run));
  } else if (!options.log.empty()) {
    return examine_log(options);
  } else if (!options.listed.empty()) {
    return list_hosts(options.listed);
  } else {
    return options.hostfile.empty() ? examine_ranks(options) : examine_hosts(options);
  }
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("doctor", "What is wrong with how ranks are started, and how to mend it");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "Job file of the run; default: no data are compared");
  command->add_option("overrides", options->overrides, "key=value, as for train");
  command->add_option("--log", options->log, "What a launcher has printed, '-': standard input")
      ->excludes("job");
  command
      ->add_option("--hostfile", options->hostfile,
                   "Looks at each of its hosts over ssh, without mpirun: where that hangs or cannot start")
      ->excludes("--log");
  command->add_option(
      "--take-over", options->locked_run,
      "A run directory whose lock a job on another host left behind: asks that host, and frees it if "
      "the job is gone");
  const char* hidden = "";
  command->add_flag("--this-host", options->this_host)->group(hidden);
  command->add_option("--mark", options->mark)->group(hidden);
  command->add_option("--list-hosts", options->listed)->group(hidden);
  command->add_option("--answer", options->answer_seconds)->check(CLI::Range(1, 60))->group(hidden);
  command->add_option("--reach", options->reach)->group(hidden);
  command->add_flag("--json", options->json, "For programs");
  command->footer(kDoctorFooter);
  command->callback([=, &action] { action = [=] { return examine(*options); }; });
}

}  // namespace lockstep
