// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert TABLE DIR, and what commands say of samples and classes.
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/duplicates.hpp"
#include "data/sets/set_loading.hpp"
#include "data/tables/npz_set.hpp"
#include "data/tables/table.hpp"
#include "data/tables/table_conversion.hpp"
#include "trainer/commands/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t kMostLinesOfClasses = 20;

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

nlohmann::ordered_json json_of(const TableConversionOptions& options, const TableConversion& done,
                               const PartSizes& sizes, const Duplicates& duplicates) {
  return {{"format", 1},
          {"directory", options.to},
          {"classes", done.class_names},
          {"train_samples", sizes.train},
          {"test_samples", sizes.test},
          {"validation_samples", sizes.validation},
          {"train_by_class", done.train},
          {"test_by_class", done.test},
          {"validation_by_class", done.validation},
          {"channels", done.shape.channels},
          {"height", done.shape.height},
          {"width", done.shape.width},
          {"damaged_rows", done.damaged},
          {"incomplete_rows", done.incomplete},
          {"columns", done.columns ? nlohmann::ordered_json::parse(to_text(*done.columns))
                                   : nlohmann::ordered_json::array()},
          {"label_column", done.label_column},
          {"duplicates", duplicates_json(duplicates)}};
}

void say_damaged_rows(const TableConversion& done) {
  for (const std::string& trouble : done.troubles) print_error(trouble);
  if (done.damaged > std::ssize(done.troubles)) print_error("...");
  if (done.damaged > 0)
    print_error(fmt::format("left out {} that cannot be used", counted(done.damaged, "row")));
  if (!done.warning.empty()) print_error("warning: " + done.warning);
}

/// Few values become columns, and many are names of the rows.
std::string cure_for(const TextColumn& column) {
  constexpr std::size_t kMostColumns = 100;
  const bool may_be_one_hot = column.different <= kMostColumns;
  return fmt::format(
      "{} holds text: {}{}, such as {}; {}--drop {} leaves it out", column.column,
      column.different < TextColumn::kMostTexts ? "" : "at least ",
      counted(column.different, "different value"), quoted_text(column.example),
      may_be_one_hot ? fmt::format("--one-hot {} makes a column of each, ", column.argument) : "",
      column.argument);
}

/// Says the numbers that were put in for empty cells, and which columns became several.
void say_columns(const TableOptions& options, const TableConversion& done) {
  if (done.incomplete > 0) print("left out {} with empty cells\n", counted(done.incomplete, "row"));
  if (!done.columns) return;
  const std::vector<TableColumn>& columns = done.columns->all;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string name = columns[c].name.empty() ? fmt::format("feature {}", c + 1) : columns[c].name;
    if (columns[c].is_one_hot) {
      std::vector<std::string> made;
      for (const std::string& value : columns[c].values) made.push_back(name + "=" + value);
      print("{}: {}: {}\n", name, counted(made.size(), "column"), first_names(made));
    }
    if (c >= done.filled.size() || done.filled[c] == 0) continue;
    const char* what = options.missing == MissingCells::kMean ? "mean" : "median";
    print("{}: {} {}\n", name, counted(done.filled[c], "empty cell"),
          columns[c].is_one_hot
              ? "with 0 in all of these"
              : fmt::format("with {}, the {} of the training half", *columns[c].filler, what));
  }
}

/// Samples of one dimension are numbers, others have the order in which networks take them.
std::string shape_text(const ImageShape& shape) {
  if (shape.height * shape.width == 1) return counted(shape.features(), "number") + " each";
  return fmt::format("{} x {} x {} numbers each (channels x rows x columns)", shape.channels, shape.height,
                     shape.width);
}

/// Keras has the channels last.
void warn_of_other_order(const ImageShape& shape) {
  const auto may_be_channels = [](int size) { return size == 1 || size == 3; };
  if (shape.height > 1 && may_be_channels(shape.width) && !may_be_channels(shape.channels))
    print_error(
        fmt::format("warning: {} channels of {} rows and {}: where these are rows, columns and channels, as "
                    "Keras has them, turn them with numpy.moveaxis(x, -1, 1)",
                    shape.channels, shape.height, counted(shape.width, "column")));
}

}  // namespace

void refuse_table_options(const CLI::App& command, const std::string& what) {
  for (const char* option : {"--label", "--drop", "--separator", "--header", "--missing", "--one-hot"}) {
    const CLI::Option* given = command.get_option_no_throw(option);
    if (given != nullptr && given->count() > 0)
      throw UsageError(
          fmt::format("{}: {} is for tables: files called .csv, .tsv, .npy or .npz", what, option));
  }
}

void add_table_options(CLI::App& command, TableOptions& table) {
  command
      .add_option("--drop", table.drop,
                  "For text: a column that is not a feature, by name or by number from 1; may be given again")
      ->allow_extra_args(false);
  command.add_option("--separator", table.separator,
                     "For text: the character between columns; default: a comma, in .tsv a tabulator");
  command
      .add_option_function<std::string>(
          "--header",
          [&table](const std::string& answer) {
            table.header = answer == "yes"  ? TableHeader::kYes
                           : answer == "no" ? TableHeader::kNo
                                            : TableHeader::kAuto;
          },
          "For text: whether the first row has the columns' names; auto: it has if a feature in it is not a "
          "number")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->default_str("auto");
}

void add_recipe_options(CLI::App& command, TableOptions& table) {
  command
      .add_option("--one-hot", table.one_hot,
                  "For text: a column of words, by name or by number from 1, of which each value becomes a "
                  "column of 0 and 1, called COLUMN=VALUE; may be given again")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--missing",
          [&table](const std::string& answer) {
            table.missing = answer == "mean"     ? MissingCells::kMean
                            : answer == "median" ? MissingCells::kMedian
                                                 : MissingCells::kDropped;
          },
          "For text: treatment of empty cells, and of NA, NaN, null, None and ?: the mean or median of their "
          "column in the training half, which predict takes, too; drop leaves their rows out; default: they "
          "are refused")
      ->check(CLI::IsMember({"mean", "median", "drop"}));
}

std::string judges_text(std::int64_t test, std::int64_t validation) {
  return validation == 0 ? fmt::format("{} to test with", with_thousands(test))
                         : fmt::format("{} to validate and {} to test with", with_thousands(validation),
                                       with_thousands(test));
}

void say_how_to_train(const std::string& set, const std::string& directory, bool has_validation_half) {
  print("train on it with   data: {{set: {}, root: {}{}}}\n", set, format_yaml_text(directory),
        has_validation_half ? ", validation: files" : "");
}

void say_samples_of_classes(const std::vector<std::string>& names, const std::vector<std::int64_t>& train,
                            const std::vector<std::int64_t>& test,
                            const std::vector<std::int64_t>& validation) {
  const bool has_validation_half = sum_of(validation) > 0;
  int width = 5;
  for (const std::string& name : names) width = std::max(width, display_width(name));
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (names.size() <= kMostLinesOfClasses)
      print("  {}{} {:>9}{} {:>9}\n", names[c],
            std::string(static_cast<std::size_t>(width - display_width(names[c])), ' '),
            with_thousands(train[c]),
            has_validation_half ? fmt::format(" {:>9}", with_thousands(validation[c])) : "",
            with_thousands(test[c]));
    if (test[c] == 0)
      print_error(
          fmt::format("warning: class {} has no samples to test with: add some", quoted_text(names[c])));
  }
}

nlohmann::ordered_json duplicates_json(const Duplicates& found) {
  return {
      {"test", found.test}, {"validation", found.validation}, {"under_two_labels", found.under_two_labels}};
}

void say_duplicates(const Duplicates& found) {
  for (const auto& [count, thing] :
       {std::pair{found.test, "test sample"}, {found.validation, "validation sample"}})
    if (count > 0)
      print_error(fmt::format("warning: {} {} in another half, too: accuracy looks better than it is",
                              counted(count, thing), count == 1 ? "is" : "are"));
  for (const std::string& example : found.of_parts) print_error("  " + example);
  if (found.under_two_labels > 0)
    print_error(fmt::format("warning: {} {} under two labels", counted(found.under_two_labels, "sample"),
                            found.under_two_labels == 1 ? "is" : "are"));
  for (const std::string& example : found.of_labels) print_error("  " + example);
}

Duplicates say_duplicates_in(const std::string& set, const std::string& directory, bool has_validation_half) {
  Duplicates found = find_duplicates(load_dataset({.set = set,
                                                   .root = directory,
                                                   .mean = {0},
                                                   .std = {1},
                                                   .validation = {.is_files = has_validation_half}}));
  say_duplicates(found);
  return found;
}

namespace {

int say_conversion(const TableConversionOptions& options, const TableConversion& done, const PartSizes& sizes,
                   const std::string& set, bool json) {
  const Duplicates duplicates = say_duplicates_in(set, options.to, sizes.validation > 0);
  if (json) return print_json(json_of(options, done, sizes, duplicates));
  if (!done.label_column.empty()) print("labels: {}\n", done.label_column);
  print("{}: {} ({}), {} to train on, {}, {}\n", options.to, counted(done.class_names.size(), "class"),
        first_names(done.class_names), counted(sizes.train, "sample"),
        judges_text(sizes.test, sizes.validation), shape_text(done.shape));
  say_columns(options.table, done);
  say_samples_of_classes(done.class_names, done.train, done.test, done.validation);
  say_how_to_train(set, options.to, sizes.validation > 0);
  return 0;
}

}  // namespace

int convert_table_and_say(const TableConversionOptions& options, bool json) {
  const TableConversion done = [&] {
    try {
      return convert_table(Env::posix(), options);
    } catch (const TextColumnsError& error) {
      for (const TextColumn& column : error.columns()) print_error(cure_for(column));
      throw;
    }
  }();
  say_damaged_rows(done);
  warn_of_other_order(done.shape);
  return say_conversion(options, done, {sum_of(done.train), sum_of(done.test), sum_of(done.validation)},
                        "table", json);
}

int convert_npz_set_and_say(const TableConversionOptions& options, bool json) {
  const NpzSetConversion done =
      convert_npz_set(Env::posix(), options.table.from, options.to, options.replace);
  if (!json && !done.order.empty()) print("{}\n", done.order);
  if (!json && done.has_label_sets)
    print("samples have any number of labels, and count for each: train.loss=binary_cross_entropy\n");
  return say_conversion(options, done.samples, done.sizes, done.is_fp32 ? "table" : "shards", json);
}

}  // namespace lockstep
