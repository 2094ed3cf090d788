// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the catalogue where a set is known by name; otherwise its format is asked.
#include "data/set_outline.hpp"

#include "data/idx_set.hpp"
#include "data/set_formats.hpp"

namespace lockstep {

SetOutline outline_of(const std::string& set, const std::string& root) {
  const SetEntry& entry = find_set(set);
  if (entry.is_known_by_name()) {
    return {.shape = entry.shape,
            .classes = static_cast<int>(entry.class_names.size()),
            .train_samples = entry.train_samples,
            .test_samples = entry.test_samples,
            .is_fp32 = entry.is_fp32};
  }
  const SetFormat& format = format_of(entry);
  const std::string directory = resolve_data_root(set, root);
  return format.outline(entry, find_set_files(entry, format.files(entry), {directory}));
}

}  // namespace lockstep
