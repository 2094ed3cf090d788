// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A command adds itself to the command line, and says what to run when it is chosen.
#pragma once

#include "data/pictures/picture.hpp"
#include "data/tables/table.hpp"
#include "data/tables/table_conversion.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/equal_ranks.hpp"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // its headers take seconds to read
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace lockstep {

struct Duplicates;  // data/sets/duplicates.hpp

// The commands of the program. Each adds itself to the command line and says what to run when it is chosen.

/// Function that main runs after parsing; returns the exit code.
using Action = std::function<int()>;
/// Makes `work` the action where this command is chosen.
void on_choice(CLI::App& command, Action& action, Action work);

void add_train_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
void add_prove_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_checkpoint_commands(CLI::App& app, Action& action);  ///< hash, inspect, verify, diff, export
void add_runs_command(CLI::App& app, Action& action);
void add_compare_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_convert_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_burn_command(CLI::App& app, Action& action);
void add_help_command(CLI::App& app, Action& action);
/// Asked by the shells' completion (launch/completion).
void add_complete_command(CLI::App& app, Action& action);

// Picks the command that a command line names, and turns errors into one line and an exit code.

struct NamedCommand {
  std::string name;  ///< "bench step"
  const CLI::App* command;
};

/// Runs the command in main()'s arguments. @return the exit code; every error has been printed
int run_command_line(int argc, char** argv);

// Words that several commands' help has.

inline constexpr const char* kJsonHelp = "Print one JSON object";
inline constexpr const char* kCheckpointHelp =
    "A run directory (its newest good checkpoint), one checkpoint's directory, or RUN@best, RUN@last, "
    "RUN@epoch:N, RUN@step:N; RUN@ema, RUN@swa: an average of its weights";

/// Prints it on one line. @returns the exit code, 0
int print_json(const nlohmann::ordered_json& json);

/// Numbers from `least` to `most` alone are taken, and the help shows the default.
void limit(CLI::Option* number, int least, int most);

// Options shared by commands that compute on a trained run: --device and --threads.

/// Writes into `parallel`, which has the defaults and must outlive the parsing.
void add_parallel_options(CLI::App& command, ParallelSection& parallel);

/// --backend, likewise.
void add_backend_option(CLI::App& command, std::string& backend);

/// The options of a command as facts that are the same on all ranks. Files and folders, which may be elsewhere on another
/// host, and how a rank shows and computes are left out.
RankFacts option_facts(const CLI::App& command);

/// --fit, of commands that give pictures the size of a set's images. Writes into `fit`, which must outlive the parsing.
CLI::Option* add_fit_option(CLI::App& command, std::optional<PictureFit>& fit, const char* otherwise);

/// A check of an option's text: what `parse` finds nothing in is refused as "'TEXT' is not a size".
auto parsed_by(auto parse, const std::string& why_not) {
  return [=](const std::string& text) {
    return parse(text) ? std::string() : fmt::format("'{}' {}", text, why_not);
  };
}

// Tables: convert makes sets of them, and predict reads their rows.

/// --drop, --separator and --header. Writes into `table`, which must outlive the parsing.
void add_table_options(CLI::App& command, TableOptions& table);

/// --missing and --one-hot, of convert.
void add_recipe_options(CLI::App& command, TableOptions& table);

/// @throws UsageError  one of these, or --label, was given for something other than a table. @param what  for the message
void refuse_table_options(const CLI::App& command, const std::string& what);

/// lockstep convert TABLE DIR. @param json  one object in place of lines
int convert_table_and_say(const TableConversionOptions& options, bool json);
/// Converts a whole set: data/tables/npz_set.hpp.
int convert_npz_set_and_say(const TableConversionOptions& options, bool json);

/// Prints a line for each class, if there are few: its samples to train, validate and test. Warns of classes
/// without test samples.
void say_samples_of_classes(const std::vector<std::string>& names, const std::vector<std::int64_t>& train,
                            const std::vector<std::int64_t>& test,
                            const std::vector<std::int64_t>& validation);
/// "8 to test with", or "4 to validate and 8 to test with"
std::string judges_text(std::int64_t test, std::int64_t validation);
/// The line of a job for a set that was made.
void say_how_to_train(const std::string& set, const std::string& directory, bool has_validation_half);
/// A warning for each kind of them.
void say_duplicates(const Duplicates& found);
/// {"test": 2, "validation": 0, "under_two_labels": 1}
nlohmann::ordered_json duplicates_json(const Duplicates& found);
/// Looks into a set that convert has written, and warns of what it finds. @param set  "table" or "shards"
Duplicates say_duplicates_in(const std::string& set, const std::string& directory, bool has_validation_half);

// help_command.cpp: how help looks.

/// Formats --help, as wide as the page.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// Help on a key of a job, or on the keys of a section; "" if the name is unknown.
std::string help_of_key(const std::string& question);

}  // namespace lockstep
