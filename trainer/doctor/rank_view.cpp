// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A view as JSON, field by field.
#include "trainer/doctor/rank_view_json.hpp"

namespace lockstep {

std::string to_message(const RankView& view) {
  return nlohmann::json(view).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankView rank_view_of(const std::string& message) {
  return nlohmann::json::parse(message).get<RankView>();
}

}  // namespace lockstep
