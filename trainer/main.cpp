// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The program: picks the command and turns errors into one line and an exit code.
#include "kernels/runtime/error.hpp"
#include "kernels/runtime/yaml/strict_yaml.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/launched_rank.hpp"
#include "trainer/rank_runner.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr const char* kDescription =
    "Lockstep trains neural networks on many processes: the same weights, bit for bit, on any number of "
    "ranks.\n\n"
    "  lockstep train launch/jobs/mnist.yaml                   one rank\n"
    "  mpirun -np 2 lockstep train launch/jobs/mnist.yaml      two ranks, same weights\n"
    "  lockstep predict runs/mnist digit.png                   use what was trained\n";

constexpr const char* kFooter =
    "Exit codes: 0 ok, 2 usage or job file, 65 damaged data, 66 missing data, 69 device not available,\n"
    "70 internal error or NaN, 71 a peer was lost, 74 input/output, 75 saved on request: run me again.";

/// CLI11 would only say that a command is missing.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  throw lockstep::UsageError("there is no command " + lockstep::quoted_text(argv[1]) +
                             lockstep::did_you_mean(argv[1], candidates) + "; see 'lockstep --help'");
}

/// An error before the ranks are connected. As a rule it strikes all alike: the first rank says it, and its
/// exit code makes the launcher end the others, for which mpirun takes a second. A rank that is still there
/// then failed alone.
int end_with(lockstep::ExitCode code, const std::string& message) {
  if (lockstep::speaks_for_all()) {
    lockstep::print_error(message);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    lockstep::print_error("rank " + std::to_string(lockstep::launched_rank()) + ": " + message);
  }
  return static_cast<int>(code);
}

/// Also where --help and --version end up.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return lockstep::speaks_for_all() ? app.exit(error) : 0;
  return end_with(lockstep::ExitCode::kUsage, std::string(error.what()) + "; see 'lockstep --help'");
}

int run(const lockstep::Action& action) {
  try {
    return action();
  } catch (const lockstep::Error& error) {
    return end_with(error.code(), error.what());
  } catch (const std::exception& error) {
    return end_with(lockstep::ExitCode::kInternal, std::string("internal error: ") + error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription};
  app.name("lockstep");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("lockstep ") + LOCKSTEP_VERSION);
  app.require_subcommand(1);

  lockstep::Action action;
  lockstep::add_train_command(app, action);
  lockstep::add_eval_command(app, action);
  lockstep::add_predict_command(app, action);
  lockstep::add_validate_command(app, action);
  lockstep::add_checkpoint_commands(app, action);
  lockstep::add_devices_command(app, action);
  lockstep::add_bench_command(app, action);
  try {
    refuse_unknown_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  } catch (const lockstep::UsageError& error) {
    return run([&]() -> int { throw error; });
  }
  return run(action);
}
