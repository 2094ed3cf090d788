// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "cubin.hpp"

#include "elf_file.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace lockstep::machine_code {
namespace {

constexpr std::string_view kText = ".text.", kInfo = ".nv.info", kShared = ".nv.shared.";
constexpr std::uint8_t kHasBytes = 4;  ///< format of an attribute: its size and as many bytes follow
constexpr std::uint8_t kMostThreads = 0x05, kFrameSize = 0x11, kRegisters = 0x2F;

using Attribute = std::function<void(std::uint8_t attribute, std::string_view bytes)>;

void for_each_attribute(std::string_view info, const Attribute& take) {
  while (info.size() >= 4) {
    const auto format = read_at<std::uint8_t>(info, 0), attribute = read_at<std::uint8_t>(info, 1);
    const std::size_t size = format == kHasBytes ? read_at<std::uint16_t>(info, 2) : 0;
    take(attribute, part_of(info, 4, size));
    info.remove_prefix(4 + size);
  }
}

/// Attributes that name a symbol and give it a number.
void take_of_symbols(const ElfFile& elf, std::string_view info, std::vector<CubinKernel>& kernels) {
  for_each_attribute(info, [&](std::uint8_t attribute, std::string_view bytes) {
    if (attribute != kFrameSize && attribute != kRegisters) return;
    const Symbol& symbol = elf.symbols.at(read_at<std::uint32_t>(bytes, 0));
    const auto number = static_cast<int>(read_at<std::uint32_t>(bytes, 4));
    for (CubinKernel& kernel : kernels) {
      if (kernel.symbol == symbol.name)
        (attribute == kRegisters ? kernel.registers : kernel.stack_bytes) = number;
    }
  });
}

void take_of_kernel(std::string_view info, CubinKernel& kernel) {
  for_each_attribute(info, [&](std::uint8_t attribute, std::string_view bytes) {
    if (attribute != kMostThreads) return;
    kernel.most_threads =
        static_cast<int>(read_at<std::uint32_t>(bytes, 0) * read_at<std::uint32_t>(bytes, 4) *
                         read_at<std::uint32_t>(bytes, 8));
  });
}

std::vector<Instruction> instructions_of(std::string_view code) {
  std::vector<Instruction> instructions;
  for (std::size_t at = 0; at + Instruction::kBytes <= code.size(); at += Instruction::kBytes)
    instructions.push_back({read_at<std::uint64_t>(code, at), read_at<std::uint64_t>(code, at + 8)});
  return instructions;
}

std::vector<Routine> routines_in(const ElfFile& elf, std::size_t section) {
  std::vector<Routine> routines;
  for (const Symbol& symbol : elf.symbols) {
    if (symbol.section != section || symbol.name.find("$__cuda") == std::string_view::npos) continue;
    routines.push_back({std::string(symbol.name), symbol.begin / Instruction::kBytes,
                        (symbol.begin + symbol.size) / Instruction::kBytes});
  }
  return routines;
}

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

}  // namespace

const Routine* CubinKernel::routine_of(std::size_t instruction) const {
  const auto found = std::find_if(routines.begin(), routines.end(), [&](const Routine& routine) {
    return instruction >= routine.begin && instruction < routine.end;
  });
  return found == routines.end() ? nullptr : &*found;
}

std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin, int capability) {
  const ElfFile elf(cubin);
  std::vector<CubinKernel> kernels;
  for (std::size_t i = 0; i < elf.sections.size(); ++i) {
    const Section& section = elf.sections[i];
    if (!begins_with(section.name, kText)) continue;
    CubinKernel kernel;
    kernel.symbol = section.name.substr(kText.size());
    kernel.capability = capability;
    kernel.instructions = instructions_of(section.bytes);
    kernel.routines = routines_in(elf, i);
    kernels.push_back(std::move(kernel));
  }
  for (const Section& section : elf.sections) {
    if (section.name == kInfo) take_of_symbols(elf, section.bytes, kernels);
    for (CubinKernel& kernel : kernels) {
      if (section.name == std::string(kInfo) + "." + kernel.symbol) take_of_kernel(section.bytes, kernel);
      if (section.name == std::string(kShared) + kernel.symbol)
        kernel.shared_bytes = static_cast<int>(section.size);
    }
  }
  return kernels;
}

}  // namespace lockstep::machine_code
