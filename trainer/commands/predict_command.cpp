// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep predict CHECKPOINT IMAGE...
#include "data/picture.hpp"
#include "data/set_facts.hpp"
#include "kernels/cpu/cpu_ops.hpp"
#include "kernels/runtime/error.hpp"
#include "kernels/runtime/output.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/saved_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> images;
  std::string invert = "auto";
};

/// Runs pictures through a network, one at a time.
class Predictor {
 public:
  explicit Predictor(const SavedModel& model)
      : model_(model), ops_(cpu::make_ops()), execution_(model.network, *ops_, ops_->batch_multiple()) {}

  /// Probability of each class.
  std::vector<float> predict(const Picture& picture) {
    const int batch = ops_->batch_multiple();
    const std::int32_t first = 0;
    const DatasetOptions& data = model_.data.options;
    const auto scale = static_cast<float>(1.0 / (255.0 * data.std));
    const auto shift = static_cast<float>(-data.mean / data.std);
    ops_->gather_images({.batch = batch, .samples = 1, .features = static_cast<int>(picture.pixels.size())},
                        picture.pixels.data(), &first, scale, shift, execution_.input());
    float* logits = execution_.forward_evaluation(model_.weights.data(), batch);
    const int classes = model_.network.classes();
    ops_->log_softmax({.batch = batch, .samples = 1, .classes = classes}, logits, logits);
    std::vector<float> probabilities;
    for (int c = 0; c < classes; ++c) probabilities.push_back(std::exp(logits[c * batch]));
    return probabilities;
  }

 private:
  const SavedModel& model_;
  std::unique_ptr<Ops> ops_;
  Execution execution_;
};

/// What is done to a picture so that it looks like the training images, and what is said about it. `auto`
/// compares its background with theirs; images of IDX files are data, and data are what they are.
Picture prepare(Picture picture, const SavedModel& model, const std::string& invert_option) {
  const bool light = has_light_background(picture), trained_on_light = model.data.light_background;
  const char* of_training = trained_on_light ? "light" : "dark";
  const char* said = "";
  if (invert_option == "yes") {
    invert(picture);
    said = " (inverted)";
  } else if (invert_option == "auto" && picture.from_idx) {
    said = " (as in the file)";
  } else if (invert_option == "auto" && light != trained_on_light) {
    invert(picture);
    picture.name += fmt::format(" (inverted: {} background, that of the training images is {})",
                                light ? "light" : "dark", of_training);
  } else if (invert_option == "auto") {
    picture.name += fmt::format(" (not inverted: {} background, like the training images)", of_training);
  }
  picture.name += said;
  const ImageShape& shape = model.network.input_shape();
  return resize(picture, shape.width, shape.height);
}

std::string bar(float probability) {
  constexpr int kWidth = 40;
  std::string text;
  for (int i = 0; i < static_cast<int>(std::lround(probability * kWidth)); ++i) text += "█";
  return text;
}

std::vector<std::string> names_of_classes(const SavedModel& model) {
  auto names = set_facts(model.data.options.set).class_names;
  names.resize(static_cast<std::size_t>(model.network.classes()), "?");
  return names;
}

void print_prediction(const std::string& image, const std::vector<float>& probabilities,
                      const std::vector<std::string>& names) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
  print("{}: {}\n", image, names[static_cast<std::size_t>(best)]);
  for (std::size_t c = 0; c < probabilities.size(); ++c) {
    print("  {:>12} {:>6.2f} % {}\n", names[c], 100 * probabilities[c], bar(probabilities[c]));
  }
}

int predict(const Options& options) {
  const SavedModel model = load_saved_model(options.checkpoint);
  const ImageShape& shape = model.network.input_shape();
  if (shape.channels != 1) {
    throw UsageError(fmt::format("{}: trained on {} features a sample, not on grey pictures",
                                 model.checkpoint, shape.features()));
  }
  const auto names = names_of_classes(model);
  Predictor predictor(model);
  for (const auto& path : options.images) {
    for (const auto& read : read_pictures(path)) {
      const Picture picture = prepare(read, model, options.invert);
      print_prediction(picture.name, predictor.predict(picture), names);
    }
  }
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("predict", "Classify pictures with a trained network");
  auto options = std::make_shared<Options>();
  command->add_option("checkpoint", options->checkpoint, "A run directory or one of its checkpoints")
      ->required();
  command
      ->add_option("images", options->images,
                   "PNG, PGM (P5), IDX files, or one image of an IDX file: FILE[12]")
      ->required();
  command
      ->add_option("--invert", options->invert,
                   "auto: pictures whose background (light or dark, by their border) is not that of the "
                   "training images; "
                   "never images of IDX files")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  command->footer(
      "Pictures of another size are scaled to that of the training images.\n"
      "Example: lockstep predict runs/mnist digit.png");
  command->callback([=, &action] { action = [=] { return predict(*options); }; });
}

}  // namespace lockstep
