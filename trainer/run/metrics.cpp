// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MetricsWriter: lines go to an AppendFile.
#include "trainer/run/metrics.hpp"

#include "common/files/append_file.hpp"
#include "common/files/env.hpp"
#include "common/text/json_text.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep {

MetricsWriter::MetricsWriter() = default;
MetricsWriter::MetricsWriter(Env& env, const std::string& path)
    : file_(std::make_unique<AppendFile>(path)) {
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  lines_ = std::ranges::count(bytes, std::byte{'\n'});
  hash_.update(bytes);
}
MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  if (!file_) return;
  const std::string line = json_text(event) + "\n";
  ++lines_;
  hash_.update(std::as_bytes(std::span(line)));
  file_->append(line);  // keeps what it cannot write now
}

CheckpointMetrics MetricsWriter::position() const {
  return {lines_, hex(hash_.so_far())};
}

void MetricsWriter::sync() {
  if (file_) file_->sync();
}

bool MetricsWriter::is_complete() const {
  return !file_ || file_->is_complete();
}

}  // namespace lockstep
