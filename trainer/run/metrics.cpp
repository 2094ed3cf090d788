// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MetricsWriter: lines go to an AppendFile.
#include "trainer/run/metrics.hpp"

#include "common/files/append_file.hpp"
#include "common/text/json_text.hpp"

namespace lockstep {

MetricsWriter::MetricsWriter() = default;
MetricsWriter::MetricsWriter(const std::string& path) : file_(std::make_unique<AppendFile>(path)) {}
MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  if (file_) file_->append(json_text(event) + "\n");
}

void MetricsWriter::sync() {
  if (file_) file_->sync();
}

bool MetricsWriter::is_complete() const {
  return !file_ || file_->is_complete();
}

}  // namespace lockstep
