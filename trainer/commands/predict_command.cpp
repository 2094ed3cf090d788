// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep predict CHECKPOINT IMAGE..., or TABLE...
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "data/normalisation.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/names.hpp"
#include "data/tables/table.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/tools/prediction.hpp"
#include "trainer/tools/prediction_input.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

struct PredictOptions {
  std::string checkpoint;
  std::vector<std::string> images;
  PreparationOptions preparation;
  bool json = false, csv = false, summary = false;
  int top = 0;
  TableOptions table = {.has_labels = false};
};

std::vector<std::string> names_of_classes(const SavedModel& model) {
  auto names = model.data.class_names;
  if (names.empty()) return numbered_classes(model.network.classes());
  names.resize(static_cast<std::size_t>(model.network.classes()), "?");
  return names;
}

bool is_trained_on_a_table(const SavedModel& model) {
  const std::string& set = model.data.options.set;
  return find_set(set).is_fp32 && !is_made_in_memory(set);
}

/// Grey or colour, as the training images are. Images of other kinds can only come from IDX files.
PictureColour colour_of(const SavedModel& model) {
  const ImageShape& shape = model.network.input_shape();
  if (find_set(model.data.options.set).is_fp32)
    throw UsageError(fmt::format("{}: trained on {} a sample, not on pictures", model.checkpoint,
                                 counted(shape.features(), "feature")));
  return shape.channels == channels_of(PictureColour::kRgb) ? PictureColour::kRgb : PictureColour::kGrey;
}

/// Answers pictures one after another, a batch at a time, and prints what options ask for.
class Answerer {
 public:
  Answerer(const SavedModel& model, const PredictOptions& options)
      : options_(options),
        style_{.class_names = names_of_classes(model),
               .top = options.top,
               .unicode = output_terminal().unicode,
               .loss = model.loss,
               .thing = is_trained_on_a_table(model) ? "row" : "picture"},
        prepare_(model, options.preparation),
        predictor_(model) {}

  /// @param name  of what they come from     @param alone  the only picture there: it gets bars, others a line
  void begin(const std::string& name, bool alone) {
    name_ = name;
    text_of_ = options_.json ? json_of : options_.csv ? csv_of : alone ? bars_of : line_of;
    summary_.emplace(style_.class_names.size());
  }
  /// Rows of a table, at most Predictor::kBatch.
  void take_rows(std::vector<float> rows, const std::vector<std::string>& names) {
    auto scores = predictor_.predict_rows(std::move(rows));
    for (std::size_t i = 0; i < names.size(); ++i) say({.picture = names[i], .scores = std::move(scores[i])});
  }
  void take(Picture picture) {
    waiting_.push_back(std::move(picture));
    if (waiting_.size() == Predictor::kBatch) answer();
  }
  void end() {
    answer();
    if (options_.summary)
      print("{}", options_.json ? summary_->to_json(name_, style_) : summary_->to_text(name_, style_));
  }

 private:
  void answer() {
    if (waiting_.empty()) return;
    std::vector<PreparedPicture> ready;
    std::vector<Picture> images;
    for (const Picture& picture : waiting_) images.push_back(ready.emplace_back(prepare_(picture)).picture);
    auto scores = predictor_.predict(images);
    for (std::size_t i = 0; i < ready.size(); ++i)
      say({.picture = waiting_[i].name,
           .original = waiting_[i].original,
           .scores = std::move(scores[i]),
           .done = std::move(ready[i].done),
           .warnings = std::move(ready[i].warnings)});
    waiting_.clear();
  }
  void say(Prediction prediction) {
    if (prediction.warnings.empty()) warn_if_unsure(prediction, style_);
    if (options_.summary) return summary_->add(prediction);
    print("{}", text_of_(prediction, style_));
  }

  const PredictOptions& options_;
  ReportStyle style_;
  Preparation prepare_;
  Predictor predictor_;
  std::string name_;
  std::string (*text_of_)(const Prediction&, const ReportStyle&) = nullptr;
  std::optional<PredictionSummary> summary_;
  std::vector<Picture> waiting_;
};

/// A sample of a set, if the argument names one. @returns false: it does not
bool predict_sample(const std::string& text, SetSamples& samples, Answerer& answerer) {
  const auto name = parse_sample_name(text);
  if (!name) return false;
  SetSample sample = samples.read(*name, text);
  answerer.begin(text, true);
  if (sample.row.empty())
    answerer.take(std::move(sample.picture));
  else
    answerer.take_rows(std::move(sample.row), {text});
  return true;
}

int predict_file(const std::string& path, PictureColour colour, Answerer& answerer) {
  const Pictures pictures = read_pictures(path, colour);
  answerer.begin(path, pictures.size() == 1);
  for (std::size_t i = 0; i < pictures.size(); ++i) answerer.take(pictures[i]);
  return 0;
}

/// A picture that is damaged or cannot be read is named, and the others are answered. @returns the highest exit code
int predict_folder(const std::string& path, PictureColour colour, Answerer& answerer) {
  int code = 0;
  answerer.begin(path, false);
  for (const auto& file : find_pictures(path)) {
    std::optional<Picture> picture;
    try {
      picture = read_pictures(file.string(), colour)[0];
    } catch (const Error& error) {
      print_error(error.what());
      code = std::max(code, static_cast<int>(error.code()));
      continue;
    }
    answerer.take(std::move(*picture));
  }
  return code;
}

/// A row that cannot be used is named, and the others are answered. @returns the exit code
int predict_table(const std::string& path, TableOptions options, const SavedModel& model,
                  Answerer& answerer) {
  const ImageShape& shape = model.network.input_shape();
  const Normalisation by{.mean = model.data.options.mean, .std = model.data.options.std};
  if (!is_called_a_table(path))
    throw UsageError(fmt::format(
        "{}: the network was trained on a table; give it files called .csv, .tsv, .npy or .npz", path));
  options.from = path;
  const auto table = open_table(options);
  if (table->shape().features() != shape.features())
    throw DataError(
        fmt::format("{}: {} a row, and the network was trained on {}; leave others, such as the labels, out "
                    "with --drop COLUMN",
                    path, counted(table->shape().features(), "number"), shape.features()));
  answerer.begin(path, false);
  int code = 0;
  std::vector<float> rows;
  std::vector<std::string> names;
  const auto answer = [&] {
    if (!names.empty()) answerer.take_rows(std::exchange(rows, {}), std::exchange(names, {}));
  };
  for (TableRow row; table->next(row);) {
    const std::int64_t far = row.trouble.empty() ? find_beyond_fp32(row.features, shape, by) : -1;
    if (far >= 0)
      row.trouble =
          fmt::format("value {} is {}, too far from those of the training data", far, at(row.features, far));
    if (!row.trouble.empty()) {
      print_error(fmt::format("{}: {}: {}", path, row.place, row.trouble));
      code = static_cast<int>(ExitCode::kDataDamaged);
      continue;
    }
    rows.insert(rows.end(), row.features.begin(), row.features.end());
    names.push_back(fmt::format("{}: {}", path, row.place));
    if (names.size() == Predictor::kBatch) answer();
  }
  answer();
  return code;
}

/// @param answer  what is no sample of a set. @returns its highest exit code
int predict_all(const SavedModel& model, const PredictOptions& options,
                const std::function<int(const std::string& path, Answerer& answerer)>& answer) {
  Answerer answerer(model, options);
  SetSamples samples(model);
  if (options.csv) print("{}", csv_head(model.loss));  // above the lines of all files
  int code = 0;
  for (const std::string& path : options.images) {
    if (!predict_sample(path, samples, answerer)) code = std::max(code, answer(path, answerer));
    answerer.end();
  }
  return code;
}

int predict_tables(const SavedModel& model, const PredictOptions& options) {
  if (options.preparation.raw || options.preparation.invert != "auto")
    throw UsageError(
        fmt::format("{}: was trained on a table, and --raw and --invert are for pictures", model.checkpoint));
  TableOptions table = options.table;
  if (!model.data.columns.empty())
    table.columns =
        std::make_shared<const TableColumns>(parse_table_columns(model.data.columns, model.checkpoint));
  return predict_all(model, options, [&](const std::string& path, Answerer& answerer) {
    return predict_table(path, table, model, answerer);
  });
}

int predict(const PredictOptions& options, const CLI::App& command) {
  const SavedModel model = load_saved_model(options.checkpoint);
  if (is_trained_on_a_table(model)) return predict_tables(model, options);
  refuse_table_options(command, model.checkpoint);
  return predict_all(
      model, options, [&, colour = colour_of(model)](const std::string& path, Answerer& answerer) {
        std::error_code ignored;
        return std::filesystem::is_directory(path, ignored) ? predict_folder(path, colour, answerer)
                                                            : predict_file(path, colour, answerer);
      });
}

void add_options(CLI::App& command, PredictOptions& options) {
  command.add_option("checkpoint", options.checkpoint, kCheckpointHelp)->required();
  command
      .add_option("images", options.images,
                  "PNG, JPEG, WEBP, BMP, PGM (P5), PPM (P6), IDX files, one image of an IDX file: FILE[12], "
                  "folders: all pictures in them, a line each; or samples of a set: test[12], train[12] or "
                  "validation[12] of the run's own, DIR/test[12] of the one in DIR. Of a run on a table: "
                  "CSV, TSV, NPY or NPZ files, a line for each row, or samples")
      ->required();
  command
      .add_option("--invert", options.preparation.invert,
                  "Pictures are dark on light: yes, no, or auto, as their border tells; they are made like "
                  "the training images either way. Images of IDX files are only touched by yes")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  add_fit_option(command, options.preparation.fit, "as the training images were made");
  add_table_options(command, options.table);
  command.add_flag("--raw", options.preparation.raw, "Only scale pictures to the training images' size");
  command
      .add_option("--top", options.top,
                  fmt::format("Only the so many likeliest classes, likeliest first; default: all, of more "
                              "than {} classes the likeliest {}",
                              kMostBars, kMostBars))
      ->check(CLI::Range(1, 1000000));
  auto* json = command.add_flag(
      "--json", options.json,
      "One JSON object a line: picture, class, probability (of mse: output), top, done, warnings");
  auto* csv =
      command.add_flag("--csv", options.csv,
                       "A table for spreadsheets: picture, class, probability (of mse: output), not_sure");
  csv->excludes(json);
  command.add_flag("--summary", options.summary, "Count the pictures of each class, for each file")
      ->excludes(csv);
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("predict", "Classify pictures with a trained network");
  auto options = std::make_shared<PredictOptions>();
  add_options(*command, *options);
  command->footer(
      "Pictures are made like the training images. Where those are written figures, the ink is found, cut "
      "out, scaled and centred, with full contrast; otherwise they are scaled, in grey or colour as the "
      "network has learnt it. The steps of preparation follow the answer. 'not sure' says why an answer may "
      "be wrong: no class has 90 % (after train.loss: mse: leads by 0.5), and of figures: nothing is on the "
      "picture, it touches the edge, or it looks like two. Images of IDX files are taken as they are; a file "
      "with many of them gives a line for each.\n"
      "Examples:\n"
      "  lockstep predict runs/mnist digit.png\n"
      "  lockstep predict runs/mnist *.jpg --json --top 3\n"
      "  lockstep predict runs/mnist FOLDER --csv > answers.csv\n"
      "  lockstep predict runs/mnist t10k-images-idx3-ubyte.gz --summary");
  on_choice(*command, action, [=] { return predict(*options, *command); });
}

}  // namespace lockstep
