// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How each kind of key reads and writes its field.
#include "common/yaml.hpp"
#include "trainer/config/job_key.hpp"
#include "trainer/config/job_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::job_keys {

template <typename Integer>
JobKey integer(const char* path, const Field<Integer>& field, IntRange range, std::string meaning,
               Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    std::int64_t value = 0;
    if (!read_integer(scalar, range, value)) return false;
    field(job) = static_cast<Integer>(value);
    return true;
  };
  const auto write = [=](const Job& job) { return std::to_string(field(job)); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = describe(range),
          .determines = determines,
          .read = read,
          .write = write};
}
template JobKey integer(const char*, const Field<int>&, IntRange, std::string, Determines);
template JobKey integer(const char*, const Field<std::int64_t>&, IntRange, std::string, Determines);

JobKey real(const char* path, const Field<double>& field, RealRange range, std::string meaning,
            Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) { return read_real(scalar, range, field(job)); };
  const auto write = [=](const Job& job) { return format_double(field(job)); };
  return JobKey{.path = path,
                .meaning = std::move(meaning),
                .expected = describe(range),
                .determines = determines,
                .read = read,
                .write = write}
      .with_hint(fp32_hint);
}

JobKey reals(const char* path, const Field<std::vector<double>>& field, RealRange range, std::size_t count,
             std::string expected, std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& list, Job& job) {
    std::vector<double> values;
    if (!read_reals(list, range, values) || (count > 0 && values.size() != count)) return false;
    field(job) = std::move(values);
    return true;
  };
  const auto write = [=](const Job& job) {
    std::string text;
    for (const double value : field(job)) text += (text.empty() ? "" : ", ") + format_double(value);
    return "[" + text + "]";
  };
  return JobKey{.path = path,
                .meaning = std::move(meaning),
                .expected = std::move(expected),
                .determines = determines,
                .read = read,
                .write = write}
      .as_list()
      .with_hint(fp32_hint);
}

JobKey integers(const char* path, const Field<std::vector<std::int64_t>>& field, IntRange range,
                std::string expected, std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& list, Job& job) { return read_integers(list, range, field(job)); };
  const auto write = [=](const Job& job) { return fmt::format("[{}]", fmt::join(field(job), ", ")); };
  return JobKey{.path = path,
                .meaning = std::move(meaning),
                .expected = std::move(expected),
                .determines = determines,
                .read = read,
                .write = write}
      .as_list();
}

JobKey channel_numbers(const char* path, const Field<std::vector<double>>& field, RealRange range,
                       std::string meaning, Determines determines) {
  const auto read_list = [=](const std::vector<ScalarText>& list, Job& job) {
    return read_reals(list, range, field(job));
  };
  const auto read = [=](const ScalarText& scalar, Job& job) {
    if (scalar.text != "auto") return read_list({scalar}, job);
    field(job).clear();
    return true;
  };
  const auto write = [=](const Job& job) { return write_reals(field(job)); };
  const std::string expected =
      fmt::format("auto, {}, or a list of such numbers, one for each channel", describe(range));
  return JobKey{.path = path,
                .meaning = std::move(meaning),
                .expected = expected,
                .determines = determines,
                .read = read,
                .write = write,
                .read_list = read_list}
      .with_hint(fp32_hint);
}

JobKey boolean(const char* path, const Field<bool>& field, std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) { return read_bool(scalar, field(job)); };
  const auto write = [=](const Job& job) { return std::string(field(job) ? "true" : "false"); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = "true or false",
          .determines = determines,
          .read = read,
          .write = write};
}

JobKey choice(const char* path, const Field<std::string>& field, const std::vector<std::string_view>& choices,
              std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    return read_choice(scalar, choices, field(job));
  };
  const auto write = [=](const Job& job) { return format_yaml_text(field(job)); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = describe(choices),
          .determines = determines,
          .choices = choices,
          .read = read,
          .write = write};
}

template <typename Value>
JobKey choice(const char* path, const Field<Value>& field, std::string meaning, Determines determines) {
  std::vector<std::string_view> choices;
  for (const auto& [text, value] : kSpellings<Value>) choices.push_back(text);
  const auto read = [=](const ScalarText& scalar, Job& job) {
    const auto found = std::ranges::find(choices, scalar.text);
    if (found == choices.end()) return false;
    field(job) = kSpellings<Value>[static_cast<std::size_t>(found - choices.begin())].second;
    return true;
  };
  const auto write = [=](const Job& job) { return format_yaml_text(spelt(field(job))); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = describe(choices),
          .determines = determines,
          .choices = choices,
          .read = read,
          .write = write};
}
template JobKey choice(const char*, const Field<PipelineOrder>&, std::string, Determines);
template JobKey choice(const char*, const Field<Kernels>&, std::string, Determines);
template JobKey choice(const char*, const Field<GraphUse>&, std::string, Determines);
template JobKey choice(const char*, const Field<Determinism>&, std::string, Determines);
template JobKey choice(const char*, const Field<BatchSplit>&, std::string, Determines);

JobKey text(const char* path, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    return read_text(scalar, may_be_empty, field(job));
  };
  const auto write = [=](const Job& job) { return format_yaml_text(field(job)); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = std::move(expected),
          .determines = determines,
          .read = read,
          .write = write};
}

JobKey path(const char* name, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines) {
  JobKey key = text(name, field, may_be_empty, std::move(expected), std::move(meaning), determines);
  key.read = [=](const ScalarText& scalar, Job& job) {
    std::string value;
    if (!read_text(scalar, may_be_empty, value)) return false;
    const auto expanded = expand_home(value);
    if (expanded) field(job) = *expanded;
    return expanded.has_value();
  };
  return key;
}

JobKey seed(const char* path, const Field<std::uint64_t>& field, std::string meaning, Determines determines) {
  const auto read = [=](const ScalarText& scalar, Job& job) { return read_seed(scalar, field(job)); };
  const auto write = [=](const Job& job) { return std::to_string(field(job)); };
  const std::string expected =
      fmt::format("a whole number from 0 to {}", std::numeric_limits<std::uint64_t>::max());
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = expected,
          .determines = determines,
          .read = read,
          .write = write};
}

JobKey byte_count(const char* path, const Field<std::size_t>& field, std::string meaning) {
  const auto read = [=](const ScalarText& scalar, Job& job) { return read_byte_count(scalar, field(job)); };
  const auto write = [=](const Job& job) { return write_byte_count(field(job)); };
  const char* expected = "auto or a size from 4 to 1GiB such as 65536, 64KiB or 1MiB";
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = expected,
          .determines = Determines::kNothing,
          .read = read,
          .write = write};
}

JobKey device(const char* path, const Field<std::string>& field, std::string meaning) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    std::string value;
    if (!read_text(scalar, false, value) || !parse_device_name(value)) return false;
    field(job) = value;
    return true;
  };
  const auto write = [=](const Job& job) { return format_yaml_text(field(job)); };
  return JobKey{.path = path,
                .meaning = std::move(meaning),
                .expected = std::string(kDeviceNames),
                .determines = Determines::kNothing,
                .read = read,
                .write = write}
      .with_hint(device_hint);
}

constexpr IntRange kStageCounts{1, 4096};

JobKey stages(const char* path, const Field<StagesSection>& field, std::string meaning) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    std::int64_t count = 0;
    if (scalar.text != "auto" && !read_integer(scalar, kStageCounts, count)) return false;
    field(job) = {.count = count, .layers = {}};
    return true;
  };
  const auto read_lists = [=](const std::vector<std::vector<ScalarText>>& lists, Job& job) {
    StagesSection section;
    for (const auto& list : lists) {
      if (list.empty()) return false;
      section.layers.emplace_back();
      for (const ScalarText& name : list) {
        if (!read_text(name, false, section.layers.back().emplace_back())) return false;
      }
    }
    field(job) = std::move(section);
    return true;
  };
  const auto write = [=](const Job& job) {
    const StagesSection& section = field(job);
    if (section.layers.empty()) return section.count == 0 ? "auto" : std::to_string(section.count);
    std::vector<std::string> lists;
    for (const auto& list : section.layers) {
      std::vector<std::string> names;
      for (const std::string& name : list) names.push_back(format_yaml_text(name));
      lists.push_back(fmt::format("[{}]", fmt::join(names, ", ")));
    }
    return fmt::format("[{}]", fmt::join(lists, ", "));
  };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = fmt::format(
              "auto, {}, or a list of stages, each a list of layers such as [[conv1, relu1], [fc1]]",
              describe(kStageCounts)),
          .determines = Determines::kNothing,
          .read = read,
          .write = write,
          .read_lists = read_lists};
}

JobKey placement(const char* path, const Field<std::vector<std::int64_t>>& field, std::string meaning) {
  const IntRange range{0, 4095};
  const auto read_list = [=](const std::vector<ScalarText>& list, Job& job) {
    std::vector<std::int64_t> ranks(list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!read_integer(list[i], range, ranks[i])) return false;
    if (ranks.empty()) return false;
    field(job) = std::move(ranks);
    return true;
  };
  const auto read = [=](const ScalarText& scalar, Job& job) {
    if (scalar.text != "auto") return read_integers(scalar, range, field(job));
    field(job).clear();
    return true;
  };
  const auto write = [=](const Job& job) {
    return field(job).empty() ? std::string("auto") : fmt::format("[{}]", fmt::join(field(job), ", "));
  };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = "auto or a list of ranks from 0 on such as [0, 1, 0, 1]",
          .determines = Determines::kNothing,
          .read = read,
          .write = write,
          .read_list = read_list};
}

JobKey fault(const char* path, const Field<std::string>& field, std::string meaning) {
  const auto read = [=](const ScalarText& scalar, Job& job) {
    std::string value;
    if (!read_text(scalar, false, value) || (value != kNoFault && !parse_fault(value))) return false;
    field(job) = value;
    return true;
  };
  const auto write = [=](const Job& job) { return format_yaml_text(field(job)); };
  return {.path = path,
          .meaning = std::move(meaning),
          .expected = describe(fault_names()),
          .determines = Determines::kNothing,
          .choices = fault_names(),
          .read = read,
          .write = write};
}

}  // namespace lockstep::job_keys
