// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep doctor [JOB.yaml] [key=value ...] [--json] | --log FILE | --hostfile FILE
#include "common/console/output.hpp"
#include "common/console/terminal.hpp"
#include "common/error.hpp"
#include "common/files/env.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/config/job.hpp"
#include "trainer/doctor/doctor_report.hpp"
#include "trainer/ranks/rank_facts.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr const char* kFooter = R"(Examples:
  lockstep doctor
  mpirun -np 2 lockstep doctor launch/jobs/mnist.yaml
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
  std::string job, log;
  std::vector<std::string> overrides;
  bool json = false;
};

int exit_code(bool healthy) {
  return static_cast<int>(healthy ? ExitCode::kOk : ExitCode::kDeviceUnavailable);
}

template <typename Findings>
void show(const Findings& findings, bool json) {
  if (json) {
    print("{}\n", to_json(findings).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
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

int examine_ranks(const Options& options) {
  hash_program_in_advance();
  std::vector<std::string> overrides = options.overrides;
  const bool has_job = !options.job.empty();
  const Job job = has_job ? load_job(options.job, overrides) : Job{};
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    const Diagnosis diagnosis = diagnose(comm, job, has_job);
    if (comm.rank() == 0) show(diagnosis, options.json);
    return exit_code(diagnosis.healthy());
  });
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
  command->add_flag("--json", options->json, "For programs");
  command->footer(kFooter);
  command->callback([=, &action] {
    action = [=] { return options->log.empty() ? examine_ranks(*options) : examine_log(*options); };
  });
}

}  // namespace lockstep
