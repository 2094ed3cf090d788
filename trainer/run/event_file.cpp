// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Event files: records, names, and events as TensorBoard's messages.
#include "trainer/run/event_file.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "event_schema.pb.h"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// Records, and the names of files.

constexpr std::string_view kPrefix = "events.out.tfevents.", kSuffix = ".lockstep";

/// So that a CRC of bytes that hold CRCs says something.
std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// Little-endian, as memory is here.
std::string bytes_of(auto number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

std::string event_record(std::string_view bytes) {
  const std::string length = bytes_of(std::uint64_t{bytes.size()});
  return length + bytes_of(masked(crc32c(length))) + std::string(bytes) + bytes_of(masked(crc32c(bytes)));
}

bool is_event_file(std::string_view name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

/// Two files of one second would be read in any order.
std::string next_event_file(Env& env, const std::string& directory) {
  auto seconds = static_cast<std::int64_t>(now_seconds());
  for (const std::string& name : env.list(directory)) {
    if (!is_event_file(name)) continue;
    std::int64_t taken = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), taken);
    constexpr std::int64_t kMost = 9'999'999'999;  // largest number of ten digits
    if (taken < kMost) seconds = std::max(seconds, taken + 1);
  }
  return fmt::format("{}/{}{:010}{}", directory, kPrefix, seconds, kSuffix);
}

// Conversion of a run's events.

namespace {

using Json = nlohmann::ordered_json;
using BoardEvent = tensorboard::Event;

/// Numbers of a line that are positions and sizes, not curves.
constexpr std::array<std::string_view, 7> kNoScalars = {
    "step", "steps", "epoch", "accuracy_steps", "train_samples", "test_samples", "validation_samples"};

/// "2026-11-23T16:07:41.123Z" since 1970; of a line of an older run, which has no time, now.
double wall_time_of(const Json& event) {
  const auto text = event.value("time", Json());
  const auto told = text.is_string() ? seconds_since_1970(text.get_ref<const std::string&>()) : std::nullopt;
  return told ? *told : now_seconds();
}

void append(AppendFile& file, const BoardEvent& event) {
  file.append(event_record(event.SerializeAsString()));
}

BoardEvent event_at(double wall_time, std::int64_t step) {
  BoardEvent event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  return event;
}

}  // namespace

EventFile::EventFile(Env& env, const std::string& directory) : file_(next_event_file(env, directory)) {
  BoardEvent event = event_at(now_seconds(), 0);
  event.set_file_version("brain.Event:2");
  append(file_, event);
}

void EventFile::start_again_at(std::int64_t step) {
  BoardEvent event = event_at(now_seconds(), step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  append(file_, event);
}

void EventFile::add_line(const Json& line) {
  if (!line.is_object()) return;
  const auto said = line.value("event", Json()), step = line.value("step", Json());
  if (!said.is_string() || !step.is_number_integer()) return;
  const std::string name = said.get<std::string>();
  if (name != "step" && name != "loss" && name != "evaluation" && name != "epoch") return;
  BoardEvent event = event_at(wall_time_of(line), step.get<std::int64_t>());
  for (const auto& [key, value] : line.items()) {
    constexpr double kMost = std::numeric_limits<float>::max();
    if (!value.is_number() || std::ranges::find(kNoScalars, key) != kNoScalars.end()) continue;
    if (std::isnan(value.get<double>()) || std::abs(value.get<double>()) > kMost) continue;
    auto* scalar = event.mutable_summary()->add_value();
    scalar->set_tag(name + "/" + key);
    scalar->set_simple_value(static_cast<float>(value.get<double>()));
  }
  append(file_, event);
}

// The file of a run under way.

namespace {

/// Step of the last whole record in the newest event file of a run; 0: it has none. Nothing: there is no such file.
std::optional<std::int64_t> last_step_told(Env& env, const std::string& run_dir) {
  std::string newest;
  for (const std::string& name : env.list(run_dir))
    if (is_event_file(name)) newest = std::max(newest, name);
  if (newest.empty()) return std::nullopt;
  std::int64_t step = 0;
  const auto bytes = env.read(run_dir + "/" + newest);
  std::string_view rest = as_text(bytes);
  constexpr std::size_t kBefore = 12, kAround = 16;  // the length, and checksums of 4 bytes
  while (rest.size() >= kAround) {
    std::uint64_t size = 0;
    rest.copy(reinterpret_cast<char*>(&size), sizeof size);
    BoardEvent event;
    if (size > rest.size() - kAround || !event.ParseFromString(std::string(rest.substr(kBefore, size))))
      break;
    step = event.step();
    rest.remove_prefix(kAround + size);
  }
  return step;
}

}  // namespace

TensorBoard::TensorBoard(Env& env, const std::string& run_dir, std::int64_t step) {
  write([&] {
    const auto told = last_step_told(env, run_dir);
    const std::int64_t from = std::min(step, told.value_or(0));  // a start between may have written no file
    file_.emplace(env, run_dir);
    if (told) file_->start_again_at(from);
    read_metrics(run_dir + "/metrics.jsonl", [&](const MetricsEvent& event) {
      if (event.integer("step").value_or(0) < from) return;
      file_->add_line(event.json());
    });
  });
}

void TensorBoard::add_line(const Json& line) {
  if (file_) write([&] { file_->add_line(line); });
}

void TensorBoard::write(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    file_.reset();
    print_error(fmt::format("warning: {}; the run goes on without TensorBoard's event file", error.what()));
  }
}

}  // namespace lockstep
