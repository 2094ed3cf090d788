// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels that may begin early, and what they do before they have awaited those ahead of them.
#include "tests/kernels/machine_code/program.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace lockstep::machine_code {
namespace {

constexpr std::string_view kNever = "does not await the kernels before it";
constexpr std::string_view kEarly = "before the kernels ahead of this one have ended";
constexpr std::string_view kConstant =
    "may give what lay there before the kernels ahead of this one wrote it";

/// Of PTX: parameters, registers and addresses, of a thread's stack for one.
bool may_stand_before(const std::string& operation) {
  constexpr std::string_view kBeginnings[] = {"ld.param.", "mov.", "cvta.to.global.", "add.u64"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings), [&](std::string_view beginning) {
    return operation.compare(0, beginning.size(), beginning) == 0;
  });
}

/// Of machine code: constants, registers, the thread's stack pointer, and the numbers of threads and blocks. The same in
/// 9.0, 10.0 and 12.0.
bool may_stand_before(const Instruction& instruction) {
  static const std::set<unsigned> kHarmless = {
      0x002, 0x005, 0x010, 0x024, 0x036, 0x082,  // MOV, CS2R, IADD3, IMAD, VIADD, UMOV
      0x0B9, 0x118, 0x119, 0x182, 0x1AC, 0x1C3,  // ULDC, NOP, S2R, LDC, LDCU, S2UR
  };
  return kHarmless.count(static_cast<unsigned>(instruction.operation())) > 0;
}

std::string name_of_kernel(const std::string& symbol, int capability) {
  return readable(symbol) + " (" + std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
         "): ";
}

}  // namespace

std::vector<std::string> findings_of_waiting(const PtxKernel& kernel) {
  const std::string name = name_of_kernel(kernel.symbol, kernel.capability) + "PTX: ";
  const std::vector<std::string>& operations = kernel.operations;
  const auto wait = std::find(operations.begin(), operations.end(), "griddepcontrol.wait");
  std::vector<std::string> findings;
  if (wait == operations.end()) return {name + std::string(kNever)};
  for (auto one = operations.begin(); one != wait; ++one)
    if (!may_stand_before(*one)) findings.push_back(name + *one + ": " + std::string(kEarly));
  if (kernel.count("ld.global.nc") > 0) findings.push_back(name + "ld.global.nc: " + std::string(kConstant));
  return findings;
}

std::vector<std::string> findings_of_waiting(const CubinKernel& kernel) {
  const std::string name = name_of_kernel(kernel.symbol, kernel.capability);
  const std::vector<Instruction>& code = kernel.instructions;
  const auto wait =
      std::find_if(code.begin(), code.end(), [](const Instruction& i) { return i.is(Operation::kAcqbulk); });
  if (wait == code.end()) return {name + std::string(kNever)};
  std::vector<std::string> findings;
  const auto add = [&](std::vector<Instruction>::const_iterator one, std::string_view why) {
    findings.push_back(name + "instruction " + std::to_string(one - code.begin()) + ", " +
                       std::string(name_of(one->operation())) + ": " + std::string(why));
  };
  for (auto one = code.begin(); one != wait; ++one)
    if (!may_stand_before(*one)) add(one, kEarly);
  for (auto one = code.begin(); one != code.end(); ++one)
    if (one->is_for_constants()) add(one, kConstant);
  return findings;
}

}  // namespace lockstep::machine_code
