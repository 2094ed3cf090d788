// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables in text: which columns there are, and their rows.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/names.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table.hpp"

#include <cctype>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lockstep {

namespace {

constexpr std::array<std::string_view, 5> kLabelNames = {"label", "target", "class", "y", "species"};

bool is_called_label(const std::string& name) {
  const std::string word = in_small_letters(std::string(trimmed(name)));
  return std::ranges::find(kLabelNames, word) != kLabelNames.end();
}

class TextTable final : public Table {
 public:
  explicit TextTable(const TableOptions& options)
      : options_(options), file_(options.from), reader_(open(), separator_of(options)) {
    if (!reader_.next())
      throw DataError(fmt::format("{}: holds no rows; give a table with some", options.from));
    columns_ = reader_.fields().size();
    if (options_.has_labels && options_.label.empty() && columns_ > 1) options_.label = find_label();
    choose_columns();
    const bool is_guessed = options_.label != options.label && options.header == TableHeader::kAuto;
    if (is_guessed && !has_words()) doubted_label_ = trimmed(options_.label);
    if (options.header == TableHeader::kYes || (options.header == TableHeader::kAuto && is_header())) {
      names_.assign(reader_.fields().begin(), reader_.fields().end());
      choose_columns();
    } else {
      is_first_waiting_ = true;
    }
    require_columns();
    if (options_.columns && options_.columns->have_names() && !names_.empty()) take_in_order_of_set();
    cell_reader_.emplace(options_, options_.columns ? *options_.columns : columns_to_learn(), shown());
    shape_.channels = static_cast<int>(options_.columns ? options_.columns->numbers() : features_.size());
    if (options_.has_labels) label_column_ = name_of(label_);
    counts_rows_ = !names_.empty() && (names_[0].empty() || names_[0] == "Unnamed: 0");
  }

  std::string warning() const override {
    return counts_rows_ && rows_ > 1 ? "column 1 has no name and counts the rows from 0, as pandas' index "
                                       "does: leave it out with --drop 1"
                                     : "";
  }

  std::shared_ptr<const TableColumns> columns() const override {
    if (options_.columns) return options_.columns;
    return records_columns() ? std::make_shared<const TableColumns>(cell_reader_->learnt()) : nullptr;
  }

  std::vector<TextColumn> text_columns() const override {
    std::vector<std::string> arguments;
    for (const std::size_t column : features_) arguments.push_back(argument_for(column));
    return cell_reader_->text_columns(arguments);
  }

  bool next(TableRow& row) override {
    if (!std::exchange(is_first_waiting_, false) && !reader_.next()) return false;
    const auto fields = reader_.fields();
    row.place = fmt::format("line {}", reader_.line());
    row.trouble.clear();
    row.lacks_cells = false;
    if (fields.size() != columns_) {
      row.trouble = fmt::format("{}, and the first row has {}", counted(fields.size(), "column"), columns_);
    } else if (reader_.has_stray_text()) {
      row.trouble = "text follows a closing quote; write quotes within quotes twice";
    } else {
      read_numbers(fields, row);
    }
    return true;
  }

 private:
  /// The file, or what it holds where its name says that gzip has compressed it.
  ByteSource& open() {
    if (!in_small_letters(options_.from).ends_with(".gz")) return file_;
    return inflated_.emplace(file_);
  }

  /// The name of the column that is called as those of labels are. Names and rows are not yet distinguished.
  std::string find_label() const {
    const auto fields = reader_.fields();
    const auto called = std::ranges::find_if(fields, is_called_label);
    const bool is_one = called != fields.end() && std::ranges::count_if(fields, is_called_label) == 1;
    if (is_one && options_.header != TableHeader::kNo) return *called;
    std::string row;
    for (std::size_t i = 0; i < std::min(columns_, kMostFieldsShown); ++i)
      row += (i == 0 ? "" : ", ") + quoted_text(fields[i].substr(0, 40));
    throw UsageError(fmt::format(
        "{}: which of its {} has the labels? Give its name, or its number from 1, with --label; "
        "the first row is {}{}",
        options_.from, counted(columns_, "column"), row, columns_ > kMostFieldsShown ? ", ..." : ""));
  }

  static char separator_of(const TableOptions& options) {
    if (options.separator.size() > 1 || options.separator == "\"" || options.separator == "\n")
      throw UsageError(
          fmt::format("--separator: '{}' is not one character that separates columns, such as ';'",
                      printable_line(options.separator)));
    if (!options.separator.empty()) return options.separator.front();
    const std::string name = in_small_letters(options.from);
    return name.ends_with(".tsv") || name.ends_with(".tsv.gz") ? '\t' : ',';
  }

  std::string name_of(std::size_t column) const {
    return column < names_.size() ? fmt::format("column {} ({})", column + 1, printable_line(names_[column]))
                                  : fmt::format("column {}", column + 1);
  }

  /// By name or number. Nothing: names are not known yet.
  std::optional<std::size_t> find_column(const std::string& wanted) const {
    const auto named = std::ranges::find(names_, wanted);
    if (named != names_.end()) {
      const auto second = std::find(named + 1, names_.end(), wanted);
      if (second == names_.end()) return static_cast<std::size_t>(named - names_.begin());
      throw UsageError(fmt::format("{}: columns {} and {} are both called {}; say a number, or rename them",
                                   options_.from, named - names_.begin() + 1, second - names_.begin() + 1,
                                   quoted_text(wanted)));
    }
    const auto number = parse_int64(wanted);
    if (number && *number >= 1 && *number <= std::ssize(reader_.fields()))
      return static_cast<std::size_t>(*number - 1);
    return std::nullopt;
  }

  void choose_columns() {
    std::vector<bool> is_left_out(columns_);
    const auto mark = [&](const std::string& wanted, std::vector<bool>& marked) {
      const auto column = find_column(wanted);
      if (column)
        marked[*column] = true;
      else
        missing_ = wanted;
      return column;
    };
    missing_.clear();
    is_one_hot_.assign(columns_, false);
    for (const std::string& wanted : options_.one_hot) mark(wanted, is_one_hot_);
    for (const std::string& wanted : options_.drop) mark(wanted, is_left_out);
    if (options_.has_labels)
      label_ = mark(options_.label.empty() ? std::to_string(columns_) : options_.label, is_left_out)
                   .value_or(columns_ - 1);
    features_.clear();
    for (std::size_t i = 0; i < columns_; ++i)
      if (!is_left_out[i]) features_.push_back(i);
  }

  /// Called with the first row, of which names are not known yet. A name that is asked for makes it a header.
  bool is_header() const {
    if (!missing_.empty()) return true;
    return options_.columns && options_.columns->have_names() ? has_names_of_set() : has_words();
  }

  static bool is_number(const std::string& field) {
    float ignored = 0;
    return read_feature(field, ignored) == nullptr;
  }

  /// True if a feature in the first row is no cell. The name of the labels' column does not count.
  bool has_words() const {
    for (std::size_t i = 0; i < features_.size(); ++i) {
      const std::string& field = reader_.fields()[features_[i]];
      if (!is_text(i) && !is_missing(trimmed(field)) && !is_number(field) && field != options_.label)
        return true;
    }
    return false;
  }

  /// True if the first row has a name of the set that is no cell of its column, or all.
  bool has_names_of_set() const {
    const std::vector<TableColumn>& columns = options_.columns->all;
    std::unordered_set<std::string> names;
    for (const TableColumn& column : columns) names.insert(column.name);
    std::size_t found = 0;
    for (std::size_t i = 0; i < features_.size(); ++i) {
      const std::string& field = reader_.fields()[features_[i]];
      if (!names.contains(printable_line(field))) continue;
      const bool is_cell =
          is_text(i) ? std::ranges::count(columns[i].values, trimmed(field)) > 0 : is_number(field);
      if (!is_cell || ++found == names.size()) return true;
    }
    return false;
  }

  /// True if the i-th feature is one-hot.
  bool is_text(std::size_t i) const {
    if (options_.columns) return i < options_.columns->all.size() && options_.columns->all[i].is_one_hot;
    return is_one_hot_[features_[i]];
  }

  /// The word that --drop takes.
  std::string argument_for(std::size_t column) const {
    const std::string name = column < names_.size() ? names_[column] : "";
    const bool is_word = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
    return is_word && name.front() != '-' ? name : std::to_string(column + 1);
  }

  std::vector<std::string> shown() const {
    std::vector<std::string> shown;
    for (const std::size_t column : features_) shown.push_back(name_of(column));
    return shown;
  }

  /// A recipe that says which columns there are. Its record needs different names.
  TableColumns columns_to_learn() const {
    TableColumns columns;
    for (std::size_t i = 0; i < columns_; ++i)
      if (is_one_hot_[i] && std::ranges::find(features_, i) == features_.end())
        throw UsageError(fmt::format("{}: --one-hot: {} is not a feature: it has the labels, or is left out",
                                     options_.from, name_of(i)));
    for (const std::size_t column : features_)
      columns.all.push_back(
          {.name = names_.empty() ? "" : printable_line(names_[column]), .is_one_hot = is_one_hot_[column]});
    if (!has_recipe() || names_.empty()) return columns;
    if (const auto column = find_feature_without_own_name())
      throw DataError(fmt::format(
          "{}: {}: {}, so that predict could not tell it from others; rename it, or leave it out with --drop "
          "{}",
          options_.from, name_of(*column),
          names_[*column].empty() ? "has no name" : "another column has the same name", *column + 1));
    return columns;
  }

  std::optional<std::size_t> find_feature_without_own_name() const {
    std::set<std::string> names;
    for (const std::size_t column : features_)
      if (names_[column].empty() || !names.insert(printable_line(names_[column])).second) return column;
    return std::nullopt;
  }

  bool has_recipe() const { return !options_.one_hot.empty() || options_.fills_cells(); }
  /// A recipe, or names alone if the features' names differ.
  bool records_columns() const {
    return has_recipe() || (!names_.empty() && !find_feature_without_own_name());
  }

  /// By name: exactly those that the set was made of.
  void take_in_order_of_set() {
    std::unordered_map<std::string, std::size_t> column_of;
    for (const std::size_t column : features_) column_of.try_emplace(printable_line(names_[column]), column);
    std::vector<std::size_t> ordered;
    std::vector<bool> is_taken(columns_);
    for (const TableColumn& wanted : options_.columns->all) {
      const auto found = column_of.find(wanted.name);
      if (found == column_of.end())
        throw DataError(fmt::format("{}: has no column '{}', which the set was made of; add it",
                                    options_.from, wanted.name));
      ordered.push_back(found->second);
      is_taken[found->second] = true;
    }
    for (const std::size_t column : features_)
      if (!is_taken[column])
        throw DataError(
            fmt::format("{}: {} is none of those that the set was made of; leave it out with "
                        "--drop {}",
                        options_.from, name_of(column), argument_for(column)));
    features_ = std::move(ordered);
  }

  void require_columns() const {
    if (!missing_.empty())
      throw DataError(fmt::format("{}: has no column '{}'; {}", options_.from, printable_line(missing_),
                                  names_.empty() ? fmt::format("say its number, 1 to {}", columns_)
                                                 : "line 1 has the names, or say its number"));
    if (options_.columns && features_.size() != options_.columns->all.size() &&
        (names_.empty() || !options_.columns->have_names()))
      throw DataError(
          fmt::format("{}: {}, and the set was made of {}; leave others, such as the labels, out "
                      "with --drop COLUMN",
                      options_.from, counted(features_.size(), "column"), options_.columns->all.size()));
    if (features_.empty())
      throw DataError(
          fmt::format("{}: {} in the first row, and 2 to {} are possible; is the separator another one "
                      "(--separator ';')?",
                      options_.from, counted(columns_, "column"), CsvReader::kMostColumns));
  }

  static bool is_label(std::string_view field) {
    return !is_missing(field) && trouble_with_class_name(field) == nullptr;
  }

  void read_numbers(std::span<const std::string> fields, TableRow& row) {
    cells_.clear();
    for (const std::size_t column : features_) cells_.push_back(trimmed(fields[column]));
    cell_reader_->read(cells_, row, options_.has_labels && !is_label(trimmed(fields[label_])));
    if (features_[0] == 0 && counts_rows_ && !is_text(0) && !std::isnan(row.features[0]))
      counts_rows_ = row.features[0] == static_cast<float>(rows_++);
    if (!options_.has_labels || !row.trouble.empty()) return;
    row.label = trimmed(fields[label_]);
    if (!doubted_label_.empty() && row.label == doubted_label_)
      throw DataError(
          fmt::format("{}: line 1 has the names of the columns, or is a row with the label {}, as "
                      "{} is; say --header yes, or --header no --label {}",
                      options_.from, quoted_text(row.label), row.place, label_ + 1));
    if (is_missing(row.label)) row.trouble = fmt::format("{}: the label is missing", name_of(label_));
  }

  static constexpr std::size_t kMostFieldsShown = 8;

  TableOptions options_;
  FileSource file_;
  std::optional<GzipSource> inflated_;
  CsvReader reader_;
  std::size_t columns_ = 0, label_ = 0;
  std::vector<std::string> names_;     ///< the columns'; empty: there is no header
  std::vector<std::size_t> features_;  ///< columns
  std::vector<bool> is_one_hot_;       ///< [column]
  std::optional<ColumnReader> cell_reader_;
  std::vector<std::string_view> cells_;  ///< the row's features
  std::string missing_;                  ///< a column that was asked for, and that there is not
  std::string doubted_label_;            ///< a label, or the name of the labels' column; empty: no doubt
  bool is_first_waiting_ = false;        ///< the first row is no header: next() gives it
  bool counts_rows_ = false;             ///< the first column, which has no name, is 0, 1, 2, ... so far
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Table> open_text_table(const TableOptions& options) {
  return std::make_unique<TextTable>(options);
}

}  // namespace lockstep
