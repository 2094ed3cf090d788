// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a call complains about, for tests that compare whole messages.
#pragma once

#include "common/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {

/// The message of the ConfigError that `call` throws; a test failure if it throws none or it is not one line.
template <typename Call>
std::string config_error_of(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return message;
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace lockstep
