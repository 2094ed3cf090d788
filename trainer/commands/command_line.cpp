// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/commands/command_line.hpp"

#include "comm/backend.hpp"
#include "comm/launcher.hpp"
#include "comm/nccl/nccl.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "trainer/commands/machine_report.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>
#include <thread>

namespace lockstep {

namespace {

/// Exit code that a shell reports for a program that SIGPIPE ended. Where SIGPIPE is ignored, a command whose
/// reader is gone ends with it, too.
constexpr int kBrokenPipe = 128 + SIGPIPE;

constexpr const char* kDescription =
    "Lockstep trains neural networks on many processes: the same weights, bit for\n"
    "bit, on any number of ranks.\n\n"
    "  lockstep train launch/jobs/mnist.yaml                 one rank\n"
    "  mpirun -np 2 lockstep train launch/jobs/mnist.yaml    two, the same weights\n"
    "  lockstep predict runs/mnist digit.png                 use what was trained\n";

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 diff: they differ, prove: refuted, burn: wrong, 2 usage or job file, 3 burn: a rank "
    "is slow, 65 damaged data, 66 missing data, 69 device, memory or threads not available, 70 internal "
    "error or NaN, 71 a peer was lost, 72 numbers of a rank are wrong, and the rank is named, 74 "
    "input/output, 75 saved on request: run me again, 128 + n ended by signal n, unsaved.";

/// CLI11 would only say that a command is missing.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const auto names = names_of(app.get_subcommands(nullptr), &CLI::App::get_name);
  if (std::ranges::find(names, argv[1]) != names.end()) return;
  throw UsageError("there is no command " + quoted_text(argv[1]) + did_you_mean(argv[1], names) +
                   "; see 'lockstep --help'");
}

/// An error before the ranks are connected. As a rule it strikes all alike: the first rank says it, and its
/// exit code makes the launcher end the others, for which mpirun takes a second. A rank that is still there
/// then failed alone.
int end_with(ExitCode code, const std::string& message) {
  if (speaks_for_all()) {
    print_error(message);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    print_error("rank " + std::to_string(this_launch().rank) + ": " + message);
  }
  return static_cast<int>(code);
}

int end_with(const std::exception& error) {
  const auto [code, text] = explain(error);
  return end_with(code, text);
}

/// The command that was given; the program itself has no name.
NamedCommand given_command(const CLI::App& app) {
  NamedCommand given{"", &app};
  while (!given.command->get_subcommands().empty()) {
    given.command = given.command->get_subcommands().front();
    given.name += (given.name.empty() ? "" : " ") + given.command->get_name();
  }
  return given;
}

/// True if the command takes key=value after its job file.
bool takes_job_keys(const CLI::App& app) {
  return given_command(app).command->get_option_no_throw("overrides") != nullptr;
}

/// lockstep train --help train.optimizer: the keys that are asked for.
std::string help_of_keys(const CLI::App& app, int argc, char** argv) {
  std::string help;
  if (!takes_job_keys(app)) return help;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (find_job_key(word) != nullptr || is_job_section(word)) help += help_of_key(word);
  }
  return help;
}

void add_version_flags(CLI::App& app) {
  const auto verbose = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  auto* with_verbose = app.add_flag("--verbose", *verbose,
                                    "With --version: also build, libraries and places, for reports of bugs");
  auto* with_json = app.add_flag("--json", *json, "With --version: all of that as one JSON object");
  auto* version = app.set_version_flag("--version", [verbose, json] {
    cpu::choose_simd(environment_variable(cpu::kSimdVariable));
    cpu::int16::choose_engine(environment_variable(cpu::int16::kEngineVariable));
    if (*json) return version_json();
    return *verbose ? version_report() : version_line();
  });
  with_verbose->needs(version);
  with_json->needs(version);
}

/// --help, as wide as the page is, and --version, whose lines programs may read.
void print_help(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_name() == "CallForVersion") return print("{}\n", error.what());
  const std::string of_keys = help_of_keys(app, argc, argv);
  print("{}", of_keys.empty() ? fold_lines(app.help(), page_columns()) : of_keys);
}

/// Describes the mistake, in our words where CLI11's help less.
/// @param extras  arguments that no option of the command takes
std::string what_is_wrong(const NamedCommand& given, const CLI::ParseError& error,
                          const std::vector<std::string>& extras) {
  if (!extras.empty()) return fmt::format("not expected: {}", fmt::join(extras, " "));
  const bool lacks_something = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  std::vector<std::string> choices;
  for (const CLI::App* choice : given.command->get_subcommands({})) choices.push_back(choice->get_name());
  if (!lacks_something || choices.empty()) return error.what();
  return fmt::format("say which: {}", fmt::join(choices, ", "));
}

/// Describes mistake and cure: the key=value that was meant, or the command whose --help has more.
/// @param arguments  the command line that `app` could not parse, without the program's name
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  const NamedCommand given = given_command(app);
  std::vector<std::string> extras;  // CLI11's own message reverses them
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) extras = app.remaining(true);
  const std::string wrong = what_is_wrong(given, error, extras);
  if (const auto meant = override_for_option(arguments, extras); meant && takes_job_keys(app))
    return wrong + "; keys of the job are given as key=value: did you mean " + *meant + "?";
  return wrong + "; see 'lockstep " + given.name + (given.name.empty() ? "" : " ") + "--help'";
}

/// Also where --help and --version end up, and `lockstep` alone, which is a wrong command line that gets the
/// help.
int report_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const bool is_question = error.get_exit_code() == 0;
  if (!is_question && argc > 1)
    return end_with(ExitCode::kUsage, usage_message(app, error, {argv + 1, argv + argc}));
  if (speaks_for_all()) print_help(app, error, argc, argv);
  return is_question ? 0 : static_cast<int>(ExitCode::kUsage);
}

/// @param goes_on_unheard  what it prints is not what it was started for
int run(const Action& action, bool goes_on_unheard) {
  try {
    cpu::choose_simd(environment_variable(cpu::kSimdVariable));
    cpu::int16::choose_engine(environment_variable(cpu::int16::kEngineVariable));
    const int code = action();
    if (!goes_on_unheard) finish_standard_output();
    return code;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) return end_with(error);
    if (error.code().value() == EPIPE) return kBrokenPipe;
    return end_with(ExitCode::kIo, std::string("standard output: ") + error.what());
  } catch (const std::exception& error) {
    return end_with(error);
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  open_standard_streams();
  raise_limit_of_open_files();    // a set may lie in a thousand shards or archives
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f is a full disk then: the write fails, and its error is told
  spell_advice_as(kJobSpelling);
  CLI::App app{kDescription};
  app.name("lockstep");
  app.formatter(help_formatter());
  app.footer(kExitCodes);
  add_version_flags(app);
  app.require_subcommand(1);

  Action action;
  for (const auto add :
       {add_train_command, add_eval_command, add_predict_command, add_prove_command, add_validate_command,
        add_runs_command, add_compare_command, add_convert_command, add_import_command,
        add_checkpoint_commands, add_report_command, add_devices_command, add_doctor_command,
        add_bench_command, add_burn_command, add_help_command, add_complete_command})
    add(app, action);
  try {
    refuse_unknown_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, argc, argv);
  } catch (const std::exception& error) {
    return end_with(error);
  }
  for (const char* name : {"eval", "prove", "burn"})
    if (app.got_subcommand(name)) spell_advice_as(kOptionSpelling);
  // The processes that a launcher started are the ranks of these.
  constexpr std::array kOfAllRanks{"train", "eval", "prove", "bench", "burn", "doctor"};
  const bool is_of_all_ranks =
      std::ranges::any_of(kOfAllRanks, [&](const char* name) { return app.got_subcommand(name); });
  if (!is_of_all_ranks && repeats_rank_0(argc, argv)) return 0;
  if (is_of_all_ranks && !app.got_subcommand("doctor")) set_nccl_defaults();  // that tells what users set
  return run(action, app.got_subcommand("train"));
}

void on_choice(CLI::App& command, Action& action, Action work) {
  command.callback([&action, work = std::move(work)] { action = work; });
}

int print_json(const nlohmann::ordered_json& json) {
  print("{}\n", json_text_in_ascii(json));
  return 0;
}

void limit(CLI::Option* number, int least, int most) {
  number->check(CLI::Range(least, most))->capture_default_str();
}

// --device takes the names that parallel.device of a job file does.

void add_parallel_options(CLI::App& command, ParallelSection& parallel) {
  command
      .add_option("--device", parallel.device,
                  fmt::format("{}, as parallel.device of a job file", kDeviceNames))
      ->check(parsed_by(parse_device_name, fmt::format("is not {}", kDeviceNames)))
      ->capture_default_str();
  limit(command.add_option("--threads", parallel.threads, "Threads of each rank"), 1, 1024);
}

RankFacts option_facts(const CLI::App& command) {
  constexpr std::array<std::string_view, 6> kOfEachRank{"--data",  "--threads", "--json",
                                                        "--force", "--share",   "--ranks"};
  RankFacts facts;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->get_positional() || option == command.get_help_ptr() ||
        std::ranges::find(kOfEachRank, name) != kOfEachRank.end())
      continue;
    const bool is_given = option->count() > 0, is_file = name == "--trace",
               says_more = !is_file && option->get_items_expected_max() > 0;
    facts.push_back({FactKind::kJob, name,
                     !says_more ? is_given ? "given" : "not given"
                     : is_given ? fmt::format("{}", fmt::join(option->results(), ","))
                                : option->get_default_str()});
  }
  return facts;
}

void add_backend_option(CLI::App& command, std::string& backend) {
  const auto names = backend_names();
  command.add_option("--backend", backend, "auto, mpi, nccl or thread")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())))
      ->capture_default_str();
}

CLI::Option* add_fit_option(CLI::App& command, std::optional<PictureFit>& fit, const char* otherwise) {
  return command
      .add_option_function<std::string>(
          "--fit",
          [&fit](const std::string& name) {
            fit = std::ranges::find(kPictureFits, name, &std::pair<std::string_view, PictureFit>::first)
                      ->second;
          },
          "Pictures of other proportions: crop keeps their middle, pad adds black, squeeze changes them")
      ->check(CLI::IsMember({"crop", "pad", "squeeze"}))
      ->default_str(otherwise);
}

}  // namespace lockstep
