// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads a run's metrics.jsonl line by line, of whatever length, and believes nothing in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// One line that is a JSON object. A view: valid as long as the line that it was read from.
class MetricsEvent {
 public:
  /// Takes the place of the event that was read before. False, and no event, where the line is no JSON object.
  bool read(std::string_view line);

  /// What happened: "start", "step", "loss", "epoch", "end", ...; "" where the line does not say.
  std::string_view name() const { return name_; }
  /// A finite number; nothing where there is none under this key, such as null for a loss that is not finite.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<bool> truth(std::string_view key) const;
  /// May hold any characters: to be printed by common/output.hpp.
  std::optional<std::string> text(std::string_view key) const;
  /// The value as it stands in the line, lists and objects among them; "" where there is none.
  std::string_view raw(std::string_view key) const;
  /// All keys and values as they stand in the line, in its order.
  const std::vector<std::pair<std::string_view, std::string_view>>& fields() const { return fields_; }
  std::string_view line() const { return line_; }

 private:
  std::string_view line_, name_;
  std::vector<std::pair<std::string_view, std::string_view>> fields_;
};

using OnMetricsEvent = std::function<void(const MetricsEvent&)>;

/// A longer line is damaged: it is passed over without being kept.
inline constexpr std::size_t kLongestMetricsLine = std::size_t{1} << 20;

struct MetricsLines {
  std::int64_t whole = 0;
  std::int64_t damaged = 0;  ///< no JSON objects
  bool torn =
      false;  ///< behind the last line feed something follows: it is being written, or a crash left it
  friend bool operator==(const MetricsLines&, const MetricsLines&) = default;
};

/// Calls `on_event` for each whole line in its order. Memory is bounded for a file of any size.
/// @throws MissingDataError: it is not there; DataError: it is no regular file; IoError
MetricsLines read_metrics(const std::string& path, const OnMetricsEvent& on_event);

}  // namespace lockstep
