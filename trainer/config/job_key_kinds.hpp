// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of keys that a job file has: for each a function that makes the JobKey of a field of Job.
#pragma once

#include "trainer/config/job_key.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep::job_keys {

/// The way to one field of Job: Field([](auto& job) -> decltype(auto) { return (job.train.epochs); }). It is the same type for all fields
/// of a type, so that what is made for one, the compiler makes for all.
template <typename T>
class Field {
 public:
  template <typename Access>
  explicit Field(Access access) : mutable_(access), constant_(access) {}
  T& operator()(Job& job) const { return mutable_(job); }
  const T& operator()(const Job& job) const { return constant_(job); }

 private:
  T& (*mutable_)(Job&);
  const T& (*constant_)(const Job&);
};
template <typename Access>
Field(Access) -> Field<std::remove_reference_t<std::invoke_result_t<Access, Job&>>>;

/// @tparam Integer  int or std::int64_t
template <typename Integer>
JobKey integer(const char* path, const Field<Integer>& field, IntRange range, std::string meaning,
               Determines determines = {});
JobKey real(const char* path, const Field<double>& field, RealRange range, std::string meaning,
            Determines determines = {});
/// @param count  how many numbers; 0: any number from one on
JobKey reals(const char* path, const Field<std::vector<double>>& field, RealRange range, std::size_t count,
             std::string expected, std::string meaning, Determines determines);
JobKey integers(const char* path, const Field<std::vector<std::int64_t>>& field, IntRange range,
                std::string expected, std::string meaning, Determines determines);
/// A number for all channels of an image, a list of one for each, or auto, which is none.
JobKey channel_numbers(const char* path, const Field<std::vector<double>>& field, RealRange range,
                       std::string meaning, Determines determines = {});
JobKey boolean(const char* path, const Field<bool>& field, std::string meaning, Determines determines = {});
JobKey choice(const char* path, const Field<std::string>& field, const std::vector<std::string_view>& choices,
              std::string meaning, Determines determines = {});
/// One of the values that kSpellings has of its type.
template <typename Value>
JobKey choice(const char* path, const Field<Value>& field, std::string meaning, Determines determines = {});
/// @param may_be_empty  and then null is the empty text
JobKey text(const char* path, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines = {});
/// A text whose "~" is expanded.
JobKey path(const char* name, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines = {});
JobKey seed(const char* path, const Field<std::uint64_t>& field, std::string meaning, Determines determines);
JobKey byte_count(const char* path, const Field<std::size_t>& field, std::string meaning);
JobKey device(const char* path, const Field<std::string>& field, std::string meaning);
JobKey stages(const char* path, const Field<StagesSection>& field, std::string meaning);
JobKey placement(const char* path, const Field<std::vector<std::int64_t>>& field, std::string meaning);
JobKey fault(const char* path, const Field<std::string>& field, std::string meaning);

}  // namespace lockstep::job_keys
