// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The model of a run's newest checkpoint, as the document has it: layers, filters, classes, mistakes as pictures.
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "data/batch_loader.hpp"
#include "data/pictures/picture.hpp"
#include "models/layer.hpp"
#include "trainer/reports/class_evaluation.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/run/class_order.hpp"
#include "trainer/run/saved_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFilters = 64;

// Pictures in a page.

std::string data_uri(const Picture& picture) {
  const std::vector<std::uint8_t> png = write_png(picture);
  std::string base64((png.size() + 2) / 3 * 4 + 1, '\0');  // a zero follows it
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()), png.data(), static_cast<int>(png.size()));
  base64.pop_back();
  return "data:image/png;base64," + base64;
}

/// Sample i of a set of pictures. Of sets with other than one or three channels the first one is shown.
Json picture_of(const Dataset& data, std::int64_t sample) {
  if (!data.has_images()) return nullptr;
  Picture picture{.name = "", .width = data.shape.width, .height = data.shape.height};
  picture.channels = data.shape.channels == 3 ? 3 : 1;
  const auto index = static_cast<std::int32_t>(sample);
  const ImageRows rows(data, {&index, 1});
  const auto shown = rows[0].first(static_cast<std::size_t>(picture.channels) * picture.plane_size());
  picture.pixels.assign(shown.begin(), shown.end());
  return data_uri(picture);
}

// Weights as pictures: white is zero, blue below it, red above; with three channels as the colours they answer to.

/// Shape of the filters of the first layer with weights: a convolution's, or a linear layer's directly on
/// pictures. Nothing: neither.
std::optional<ImageShape> filter_shape(const Network& network, const Parameter& weight) {
  const ImageShape& input = network.input_shape();
  if (weight.shape.size() == 4) return ImageShape{weight.shape[1], weight.shape[2], weight.shape[3]};
  if (weight.shape.size() == 2 && weight.shape[1] == input.features() && input.height > 1) return input;
  return std::nullopt;
}

Picture filter_picture(const ImageShape& shape, std::span<const float> weights) {
  Picture picture{.name = "", .width = shape.width, .height = shape.height, .channels = 3};
  const std::size_t plane = picture.plane_size();
  picture.pixels.resize(3 * plane);
  float largest = 0;
  for (const float weight : weights) largest = std::max(largest, std::abs(weight));
  const auto at = [&](std::size_t i) { return largest > 0 ? static_cast<double>(weights[i] / largest) : 0; };
  for (std::size_t i = 0; i < plane; ++i) {
    const double value = at(i);
    const std::array<double, 3> diverging =
        value > 0 ? std::array{255 - 38 * value, 255 - 183 * value, 255 - 240 * value}
                  : std::array{255 + 218 * value, 255 + 156 * value, 255 + 20 * value};
    for (std::size_t c = 0; c < 3; ++c) {
      const double shade = shape.channels == 3 ? 127.5 * (1 + at(c * plane + i)) : diverging[c];
      picture.pixels[c * plane + i] = static_cast<std::uint8_t>(std::lround(std::clamp(shade, 0.0, 255.0)));
    }
  }
  return picture;
}

void add_filters(Json& run, const SavedModel& model) {
  const auto& parameters = model.network.parameters().parameters;
  if (parameters.empty()) return;
  const Parameter& weight = parameters.front();
  const auto shape = filter_shape(model.network, weight);
  if (!shape || shape->height * shape->width < 4) return;
  const auto outputs = static_cast<std::size_t>(weight.shape[0]), shown = std::min(outputs, kMostFilters);
  const auto size = static_cast<std::size_t>(shape->features());
  Json pictures = Json::array();
  for (std::size_t i = 0; i < shown; ++i)
    pictures.push_back(
        data_uri(filter_picture(*shape, model.weights.span().subspan(weight.offset + i * size, size))));
  std::string what = fmt::format("{}: {} of {}, {}", weight.name, shown, outputs,
                                 shape->channels == 3 ? "each as the colours that it answers to"
                                                      : "white is zero, red above it, blue below");
  if (shape->channels != 1 && shape->channels != 3) what += "; the first channel";
  run["filters"] = {{"what", std::move(what)}, {"pictures", std::move(pictures)}};
}

Json layers_json(const Network& network) {
  Json layers = Json::array({{{"name", "input"},
                              {"kind", "input"},
                              {"output", to_string(network.input_shape())},
                              {"parameters", 0},
                              {"from", Json::array()}}});
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = *network.layers()[i];
    Json from = Json::array();
    if (layer.reads_layer_before()) from.push_back(i);
    if (const auto branch = layer.branch()) from.push_back(*branch + 1);
    layers.push_back({{"name", layer.name()},
                      {"kind", layer.describe()},
                      {"output", to_string(layer.output())},
                      {"parameters", layer.parameter_size()},
                      {"from", std::move(from)}});
  }
  return layers;
}

// Classes.

/// @param note  gets what the classes are of, where others than the run's own data were asked for
/// @throws Error  the data are not there, or others
std::shared_ptr<const TrainTestData> load_data(const SavedModel& model, const ReportOptions& options,
                                               std::string& note) {
  if (options.loaded != nullptr) return {std::shared_ptr<const TrainTestData>(), options.loaded};  // borrowed
  DatasetOptions wanted = model.data.options;
  wanted.validation = {};  // only the test half is looked at
  wanted.directory = resolve_data_root(wanted, options.data);
  auto data = std::make_shared<TrainTestData>(load_dataset(wanted));
  const auto differences = data_differences(model.data, *data, fingerprints_of(*data));
  const std::string what = fmt::format("{}", fmt::join(differences, ", "));
  if (!differences.empty() && options.data.empty())
    throw DataError(fmt::format("the data in {} are not its own: {}", data->origin, what));
  if (!differences.empty())
    note = fmt::format("classes and mistakes are of {}, not what it was trained on: {}", data->origin, what);
  number_as(model.data.class_names, *data);
  return data;
}

void add_classes(Json& run, const SavedModel& model, const ReportOptions& options) {
  std::string note;
  const auto data = load_data(model, options, note);
  const Dataset& test = data->test;
  if (test.shape != model.network.input_shape() || test.classes != model.network.classes())
    throw DataError("the data have another shape than its own");
  check_loss_of_labels(model.loss, test);
  if (test.has_label_sets()) {
    run["notes"].push_back("samples have several labels: the page counts classes and mistakes of one");
    return;
  }
  if (test.classes > options.most_classes) {
    run["notes"].push_back(
        fmt::format("{} are more than a run evaluates at its end: 'lockstep report' has them",
                    counted(test.classes, "class")));
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + options.class_seconds;
  const auto late = [&] { return std::chrono::steady_clock::now() > deadline; };
  auto found = evaluate_classes(model, test, options.threads, {}, late);
  if (found.interrupted) {
    run["notes"].push_back(
        fmt::format("the classes take more than {} s to evaluate: 'lockstep report' has them",
                    options.class_seconds.count()));
    return;
  }
  Json pictures = Json::array();
  for (const Mistake& mistake : found.mistakes) pictures.push_back(picture_of(test, mistake.sample));
  if (std::string warning = locate_mistakes(found, *data, test); !warning.empty())
    run["notes"].push_back(std::move(warning));
  Json json = classes_json(found, data->class_names);
  json["data"] = test.name;
  json["checkpoint"] = model.checkpoint;
  json["samples"] = found.samples();
  json["correct"] = found.correct();
  if (!note.empty()) json["note"] = note;
  for (std::size_t i = 0; i < pictures.size(); ++i) json["mistakes"][i]["picture"] = std::move(pictures[i]);
  run["classes"] = std::move(json);
}

}  // namespace

void add_model(Json& run, const std::string& directory, const ReportOptions& options) {
  try {
    const SavedModel model = load_saved_model(directory);
    run["model"] = {{"name", model.network.name()},
                    {"parameters", model.network.parameters().size},
                    {"layers", layers_json(model.network)}};
    add_filters(run, model);
    add_classes(run, model, options);
  } catch (const Error& error) {
    run["notes"].push_back(error.what());
  }
}

}  // namespace lockstep
