// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// logits CHECKPOINT FILE: writes the logits of a checkpoint's network for the test set it was trained with.
/// FILE is safetensors, for Python: images (or features), labels, logits.
#include "common/env.hpp"
#include "common/safetensors.hpp"
#include "data/dataset.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/evaluator.hpp"

namespace lockstep {
namespace {

constexpr int kColumns = 64;

std::vector<float> logits_of(const SavedModel& model, const Dataset& set) {
  WorkerPool pool(1);
  std::vector<ThreadContext> threads = make_threads(model.network, 1, kColumns);
  std::vector<float> all;
  const auto see = [&](int /*thread*/, const EvaluatedGrain& grain) {
    for (int n = 0; n < grain.shape.samples; ++n)
      for (int c = 0; c < grain.shape.classes; ++c) all.push_back(grain.logits[c * grain.shape.batch + n]);
  };
  pass_forward(pool, threads, set, kColumns, model.weights.span(), {}, never_leave, nullptr, see);
  return all;
}

void write(const std::string& checkpoint, const std::string& file) {
  const SavedModel model = load_saved_model(checkpoint);
  const TrainTestData data = load_dataset(model.data.options);
  const Dataset& set = data.test;
  const std::vector<float> logits = logits_of(model, set);
  const auto samples = static_cast<std::size_t>(set.size());
  const ImageShape& shape = set.shape;
  const std::vector<std::size_t> dims{samples, static_cast<std::size_t>(shape.channels),
                                      static_cast<std::size_t>(shape.height),
                                      static_cast<std::size_t>(shape.width)};
  const bool has_images = set.images.size() > 0;
  const std::vector<TensorView> tensors{
      {"images", has_images ? "U8" : "F32", dims,
       has_images ? std::as_bytes(set.images.span()) : std::as_bytes(set.features.span())},
      {"labels", "I32", {samples}, std::as_bytes(std::span(set.labels))},
      {"logits",
       "F32",
       {samples, static_cast<std::size_t>(model.network.classes())},
       std::as_bytes(std::span(logits))}};
  write_synced(Env::posix(), file, write_safetensors(tensors));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: logits CHECKPOINT FILE");
    lockstep::write(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
