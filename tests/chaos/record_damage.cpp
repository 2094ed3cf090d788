// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/record_damage.hpp"

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/moment.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::chaos {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kTrail = "trail.bin";

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  if (at + size <= bytes.size()) std::memcpy(&number, bytes.data() + at, size);
  return number;
}

/// The head's size and a record's stand at 12 and 16; a record begins with its step (docs/trail-format.md).
std::size_t trail_up_to(const std::string& trail, std::int64_t step) {
  const std::size_t head = number_at(trail, 12, 4), record = number_at(trail, 16, 4);
  std::size_t end = head;
  while (record > 0 && end + record <= trail.size() && std::cmp_less_equal(number_at(trail, end, 8), step))
    end += record;
  return end > head && end <= trail.size() ? end : 0;
}

std::size_t metrics_up_to(const std::string& metrics, std::int64_t step) {
  std::size_t end = 0;
  for (std::size_t newline = metrics.find('\n'); newline != metrics.npos; newline = metrics.find('\n', end)) {
    const auto line = nlohmann::json::parse(metrics.substr(end, newline - end), nullptr, false);
    if (!line.is_object() || line.value("step", std::int64_t{0}) > step) break;
    end = newline + 1;
  }
  return end;
}

}  // namespace

RecordDamage::RecordDamage(std::string run_dir) : run_dir_(std::move(run_dir)) {}

void RecordDamage::strike(Dice& dice, Tally& tally, std::string& story) {
  if (dice.percent(75)) damage(dice.percent(50) ? kMetrics : kTrail, dice, tally, story);
  if (fs::exists(run_dir_)) put_foreign_files(dice, tally, story);
}

std::size_t RecordDamage::bytes_up_to_checkpoint(const std::string& file, const std::string& text) const {
  const std::int64_t step = look_at(run_dir_).newest_checkpoint;
  const auto told = told_.find(file);
  if (step == 0 || (told != told_.end() && told->second >= step)) return 0;
  return file == kMetrics ? metrics_up_to(text, step) : trail_up_to(text, step);
}

/// Removes the file, cuts it, changes a bit or adds nonsense.
void RecordDamage::damage(const std::string& file, Dice& dice, Tally& tally, std::string& story) {
  const std::string path = run_dir_ + "/" + file;
  std::string text = testing::read_text(path);
  if (text.empty()) return;
  const std::size_t counts = bytes_up_to_checkpoint(file, text);
  const auto at = static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(text.size()) - 1));
  const auto choice = dice.between(1, 100);
  bool lost = counts > 0;
  if (choice <= 25) {
    story += fmt::format(", {} removed", file);
    fs::remove(path);
  } else if (choice <= 55) {
    story += fmt::format(", {} cut at byte {} of {}", file, at, text.size());
    fs::resize_file(path, at);
    lost = at < counts;
  } else if (choice <= 85) {
    story += fmt::format(", a bit of byte {} of {} in {} changed", at, text.size(), file);
    text[at] = static_cast<char>(text[at] ^ (1 << dice.between(0, 6)));
    testing::write_text(path, text);
    // Copies the file: damage up to a step whose loss was told is neither told nor kept by a start.
    if (counts == 0) testing::write_text(fmt::format("{}.damaged-again-{}", path, ++kept_aside_), text);
    lost = at < counts;
  } else {
    story += fmt::format(", nonsense behind {}", file);
    testing::write_text(path, text + "nonsense\n{\"step\":");
    lost = false;
  }
  damaged_.insert(file);
  if (lost) {
    owed_.insert(file);
  } else {
    tally.add(kNothingLost);
  }
}

void RecordDamage::put(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  testing::write_text(path, "a foreign file: " + path);
  foreign_[path] = "a foreign file: " + path;
}

void RecordDamage::put_foreign_files(Dice& dice, Tally& tally, std::string& story) {
  const std::vector<std::string> names = {
      "notes.txt",          "metrics.jsonl.mine",   "curve.txt",         "log/mine.log",
      "log/rank-0.log.bak", "log/verdict.txt.mine", "log/verdict-0.txt", "log/folder/verdict.txt"};
  const auto count = dice.between(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    put(fmt::format("{}/{}", run_dir_, dice.pick(names)));
    tally.add(kForeign);
  }
  story += fmt::format(", {} files of others put beside", count);
}

void RecordDamage::check_foreign_files() const {
  for (const auto& [path, text] : foreign_) {
    if (testing::read_text(path) != text) throw Violation("a foreign file is gone or was changed: " + path);
  }
}

void RecordDamage::check(const Attempt& attempt, Tally& tally) {
  check_foreign_files();
  const auto resumed = attempt.step_after("going on from step ");
  for (const std::string& file : std::exchange(owed_, {})) {
    if (attempt.err().find(file) != std::string::npos) {
      told_[file] = attempt.before().newest_checkpoint;
      tally.add(file == kMetrics ? kMetricsLost : kTrailLost);
    } else if (resumed) {
      throw Violation(
          fmt::format("{} was damaged up to the checkpoint of step {}, and that was passed over:\n{}", file,
                      *resumed, attempt.err()));
    } else {
      owed_.insert(file);  // it did not get so far: the next one owes the same
    }
  }
}

}  // namespace lockstep::chaos
