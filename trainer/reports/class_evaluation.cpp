// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Counts add up in any order, and mistakes have one order, so that no rank's share shows.
#include "trainer/reports/class_evaluation.hpp"

#include "comm/agreement.hpp"
#include "common/buffers.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/sets/names.hpp"
#include "kernels/cpu/ops.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>

namespace lockstep {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Mistake, sample, label, answer, scores)

namespace {

constexpr std::size_t kMistakesShown = 10;
constexpr int kWidestMatrix = 20;  ///< classes

/// Each thread counts by itself, and JSON and the text of a page hold every count again.
void require_memory_for_counts(int classes, std::size_t threads) {
  constexpr std::size_t kWritten = 32;  // bytes of a count there
  require_memory(checked_product(classes, classes + 1, (threads + 1) * sizeof(std::int64_t) + kWritten),
                 fmt::format("counting answers to each of {}", counted(classes, "class")),
                 "use fewer threads, or leave the classes out");
}

ClassEvaluation nothing_seen(int classes, LossKind loss) {
  const auto width = static_cast<std::size_t>(classes);
  return {.classes = classes, .loss = loss, .counts = std::vector<std::int64_t>(width * (width + 1), 0)};
}

void keep_surest(std::vector<Mistake>& mistakes) {
  std::ranges::sort(mistakes, [](const Mistake& a, const Mistake& b) {
    return a.sureness() != b.sureness() ? a.sureness() > b.sureness() : a.sample < b.sample;
  });
  if (mistakes.size() > kMistakesKept) mistakes.resize(kMistakesKept);
}

void add(ClassEvaluation& sum, const ClassEvaluation& term) {
  for (std::size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += term.counts[i];
  sum.mistakes.insert(sum.mistakes.end(), term.mistakes.begin(), term.mistakes.end());
  keep_surest(sum.mistakes);
}

int answer_to(const EvaluatedGrain& grain, int column) {
  int best = 0;
  for (int c = 1; c < grain.shape.classes; ++c)
    if (grain.logits[c * grain.shape.batch + column] > grain.logits[best * grain.shape.batch + column])
      best = c;
  return best;
}

void count_grain(const EvaluatedGrain& grain, ClassEvaluation& found) {
  const int classes = grain.shape.classes;
  std::vector<float> all(static_cast<std::size_t>(grain.shape.batch) * static_cast<std::size_t>(classes));
  score_classes(found.loss, grain.shape, grain.logits, all.data());
  for (int column = 0; column < grain.shape.samples; ++column) {
    const int label = grain.labels[column];
    std::vector<float> scores;
    for (int c = 0; c < classes; ++c) scores.push_back(at(all, c * grain.shape.batch + column));
    const bool is_nan = std::ranges::any_of(scores, [](float score) { return std::isnan(score); });
    const int answer = is_nan ? classes : answer_to(grain, column);
    ++at(found.counts, std::int64_t{label} * (classes + 1) + answer);
    if (answer != label && std::ranges::all_of(scores, [](float score) { return std::isfinite(score); }))
      found.mistakes.push_back(Mistake{
          .sample = grain.first + column, .label = label, .answer = answer, .scores = std::move(scores)});
  }
  if (found.mistakes.size() > 4 * kMistakesKept) keep_surest(found.mistakes);
}

std::optional<double> share_of(std::int64_t part, std::int64_t all) {
  if (all == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(all);
}

/// The harmonic mean of precision and recall: 2 right / (samples + answers).
std::optional<double> f1_of(const ClassEvaluation& found, int of) {
  return share_of(2 * found.count(of, of), found.samples(of) + found.answers(of));
}

}  // namespace

std::int64_t ClassEvaluation::count(int label, int answer) const {
  return at(counts, std::int64_t{label} * (classes + 1) + answer);
}

std::int64_t ClassEvaluation::samples(int label) const {
  const auto row = counts.begin() + std::int64_t{label} * (classes + 1);
  return std::accumulate(row, row + classes + 1, std::int64_t{0});
}

std::int64_t ClassEvaluation::answers(int answer) const {
  std::int64_t all = 0;
  for (int label = 0; label < classes; ++label) all += count(label, answer);
  return all;
}

std::int64_t ClassEvaluation::samples() const {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t ClassEvaluation::correct() const {
  std::int64_t all = 0;
  for (int c = 0; c < classes; ++c) all += count(c, c);
  return all;
}

std::optional<double> ClassEvaluation::precision(int of) const {
  return share_of(count(of, of), answers(of));
}

std::optional<double> ClassEvaluation::recall(int of) const {
  return share_of(count(of, of), samples(of));
}

std::optional<int> ClassEvaluation::most_taken_for(int label) const {
  std::optional<int> most;
  for (int answer = 0; answer < classes; ++answer) {
    if (answer == label || count(label, answer) == 0) continue;
    if (!most || count(label, answer) > count(label, *most)) most = answer;
  }
  return most;
}

ClassEvaluation evaluate_classes(const SavedModel& model, const Dataset& data, int threads, RankShare share,
                                 const LeaveEvaluation& leave) {
  WorkerPool pool(threads);
  std::vector<ThreadContext> contexts = make_threads(model.network, pool.threads(), model.grain);
  require_memory_for_counts(data.classes, contexts.size());
  std::vector<ClassEvaluation> parts(contexts.size(), nothing_seen(data.classes, model.loss));
  const bool left =
      pass_forward(pool, contexts, data, model.grain, model.weights.span(), share, leave, nullptr,
                   [&](int thread, const EvaluatedGrain& one) { count_grain(one, at(parts, thread)); });
  ClassEvaluation total = nothing_seen(data.classes, model.loss);
  for (const ClassEvaluation& part : parts) add(total, part);
  total.interrupted = left;
  return total;
}

// Mistakes travel only if they are among the surest of all ranks.

ClassEvaluation over_all(Communicator& comm, const ClassEvaluation& mine) {
  ClassEvaluation total = nothing_seen(mine.classes, mine.loss);
  total.counts = mine.counts;
  comm.all_reduce(std::span<std::int64_t>(total.counts));
  std::vector<float> sureness(kMistakesKept, -std::numeric_limits<float>::infinity()), of_all;
  std::ranges::transform(mine.mistakes, sureness.begin(), &Mistake::sureness);
  for (const auto& of_rank : gather(comm, std::span<const float>(sureness)))
    of_all.insert(of_all.end(), of_rank.begin(), of_rank.end());
  const auto least = of_all.begin() + kMistakesKept - 1;
  std::ranges::nth_element(of_all, least, std::greater());
  std::vector<Mistake> surest;
  std::ranges::copy_if(mine.mistakes, std::back_inserter(surest),
                       [&](const Mistake& mistake) { return mistake.sureness() >= *least; });
  for (const std::string& text : gather_text(comm, json_text(nlohmann::json(surest))))
    std::ranges::move(parse_json(text).get<std::vector<Mistake>>(), std::back_inserter(total.mistakes));
  keep_surest(total.mistakes);
  return total;
}

std::string locate_mistakes(ClassEvaluation& found, const TrainTestData& data, const Dataset& part) {
  for (Mistake& mistake : found.mistakes) {
    mistake.picture = part.picture_name(mistake.sample);
    mistake.sample = part.place_in_file(mistake.sample);
  }
  SampleNames list = read_sample_names(data, data.half_of(part));
  if (!list.names.empty())
    for (Mistake& mistake : found.mistakes) mistake.picture = at(list.names, mistake.sample);
  return list.warning;
}

// Tables, and the same as JSON.

namespace {

/// The first column is of names, the others are of numbers.
std::string table(const TableRows& rows) {
  std::vector<std::size_t> numbers(rows.front().size() - 1);
  std::iota(numbers.begin(), numbers.end(), 1);
  return align_columns(rows, numbers, 2);
}

std::string percent(std::optional<double> share) {
  return share ? percent_text(*share) + " %" : "-";
}

std::string class_table(const ClassEvaluation& found, const std::vector<std::string>& names) {
  TableRows rows = {{"class", "samples", "right", "precision", "recall", "F1", "most often mistaken for"}};
  for (int c = 0; c < found.classes; ++c) {
    const auto other = found.most_taken_for(c);
    rows.push_back(
        {at(names, c), with_thousands(found.samples(c)), with_thousands(found.count(c, c)),
         percent(found.precision(c)), percent(found.recall(c)), percent(f1_of(found, c)),
         other ? fmt::format("{} ({})", at(names, *other), with_thousands(found.count(c, *other))) : "-"});
  }
  return table(rows);
}

std::string matrix(const ClassEvaluation& found, const std::vector<std::string>& names) {
  constexpr int kColumn = 10;
  TableRows rows(1, {"class"});
  for (int c = 0; c < found.classes; ++c) rows[0].push_back(fit({{at(names, c)}}, kColumn));
  for (int label = 0; label < found.classes; ++label) {
    rows.push_back({at(names, label)});
    for (int answer = 0; answer < found.classes; ++answer) {
      const std::int64_t count = found.count(label, answer);
      rows.back().push_back(count == 0 ? "." : std::to_string(count));
    }
  }
  return table(rows);
}

}  // namespace

std::string classes_text(const ClassEvaluation& found, const std::vector<std::string>& names) {
  std::string text = "classes:\n" + class_table(found, names);
  if (const std::int64_t none = found.answers(found.classes); none > 0)
    text += fmt::format("  without an answer, since outputs are NaN: {}\n", with_thousands(none));
  if (found.classes <= kWidestMatrix)
    text += "answers, a row for each class of the data:\n" + matrix(found, names);
  if (found.mistakes.empty())
    return text +
           (found.correct() == found.samples() ? "no mistakes\n" : "no mistake has finite outputs to show\n");
  text += "surest mistakes:\n";
  for (std::size_t i = 0; i < std::min(kMistakesShown, found.mistakes.size()); ++i) {
    const Mistake& mistake = found.mistakes[i];
    const std::string picture =
        mistake.picture.empty() ? "" : fmt::format(" ({})", printable_line(mistake.picture));
    const std::string score = score_text(found.loss, mistake.sureness());
    text += fmt::format("  sample {}{}: {} mistaken for {}, {}\n", mistake.sample, picture,
                        at(names, mistake.label), at(names, mistake.answer),
                        are_probabilities(found.loss) ? score + " sure" : "output " + score);
  }
  return text;
}

nlohmann::ordered_json classes_json(const ClassEvaluation& found, const std::vector<std::string>& names) {
  using Json = nlohmann::ordered_json;
  Json classes = Json::array(), confusion = Json::array(), mistakes = Json::array();
  for (int c = 0; c < found.classes; ++c) {
    classes.push_back({{"name", at(names, c)},
                       {"samples", found.samples(c)},
                       {"correct", found.count(c, c)},
                       {"precision", found.precision(c)},
                       {"recall", found.recall(c)},
                       {"f1", f1_of(found, c)}});
    Json row = Json::array();
    for (int answer = 0; answer < found.classes; ++answer) row.push_back(found.count(c, answer));
    confusion.push_back(std::move(row));
  }
  for (const Mistake& mistake : found.mistakes) {
    mistakes.push_back({{"sample", mistake.sample},
                        {"label", mistake.label},
                        {"answer", mistake.answer},
                        {are_probabilities(found.loss) ? "probabilities" : "outputs", mistake.scores}});
    if (!mistake.picture.empty()) mistakes.back()["name"] = mistake.picture;
  }
  return {{"classes", std::move(classes)},
          {"confusion", std::move(confusion)},
          {"without_answer", found.answers(found.classes)},
          {"scores", name_of_scores(found.loss)},
          {"mistakes", std::move(mistakes)}};
}

}  // namespace lockstep
