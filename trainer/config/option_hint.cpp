// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An option is taken for a key by its last part or by another name that it has.
#include "trainer/config/option_hint.hpp"

#include "trainer/config/job_schema.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// "--batch-size" → "batch_size"
std::string name_of(const std::string& option) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  name.resize(std::min(name.find('='), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The key with this path, or else the first whose last part or other name it is.
const JobKey* key_called(const std::string& name) {
  if (const JobKey* exact = find_job_key(name)) return exact;
  for (const JobKey& key : job_schema()) {
    const auto& others = key.other_names;
    if (key.leaf() == name || std::find(others.begin(), others.end(), name) != others.end()) return &key;
  }
  return nullptr;
}

std::string value_of(const std::vector<std::string>& arguments, std::size_t option) {
  const std::string& text = arguments[option];
  if (const std::size_t equals = text.find('='); equals != text.npos) return text.substr(equals + 1);
  const bool has_next = option + 1 < arguments.size();
  const bool is_value = has_next && !arguments[option + 1].empty() && arguments[option + 1].front() != '-' &&
                        arguments[option + 1].find('=') == std::string::npos;
  return is_value ? arguments[option + 1] : "VALUE";
}

}  // namespace

std::optional<std::string> override_for_option(const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& unknown) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("-")) continue;
    if (std::find(unknown.begin(), unknown.end(), arguments[i]) == unknown.end()) continue;
    if (const JobKey* key = key_called(name_of(arguments[i])))
      return key->path + "=" + value_of(arguments, i);
  }
  return std::nullopt;
}

}  // namespace lockstep
