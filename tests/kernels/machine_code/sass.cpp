// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "sass.hpp"

#include <map>
#include <optional>

namespace lockstep::machine_code {
namespace {

/// Those that kernels of ours have. Only the first group computes with floating point.
const std::map<unsigned, std::string_view> kNames = {
    {0x008, "FSEL"},          {0x009, "FMNMX"},  {0x00A, "FSET"},      {0x00B, "FSETP"},    {0x020, "FMUL"},
    {0x021, "FADD"},          {0x023, "FFMA"},   {0x028, "DMUL"},      {0x029, "DADD"},     {0x02A, "DSETP"},
    {0x02B, "DFMA"},          {0x035, "HFMA2"},  {0x045, "I2FP"},      {0x102, "FCHK"},     {0x105, "F2I"},
    {0x106, "I2F"},           {0x107, "FRND"},   {0x108, "MUFU"},      {0x110, "F2F"},      {0x111, "F2I"},
    {0x112, "I2F"},           {0x113, "FRND"},

    {0x002, "MOV"},           {0x003, "P2R"},    {0x004, "R2P"},       {0x005, "CS2R"},     {0x006, "VOTE"},
    {0x007, "SEL"},           {0x00C, "ISETP"},  {0x00F, "VIMNMX3"},   {0x010, "IADD3"},    {0x011, "LEA"},
    {0x012, "LOP3"},          {0x013, "IABS"},   {0x016, "PRMT"},      {0x017, "IMNMX"},    {0x019, "SHF"},
    {0x01C, "PLOP3"},         {0x024, "IMAD"},   {0x025, "IMAD.WIDE"}, {0x027, "IMAD.HI"},  {0x036, "VIADD"},
    {0x046, "VIADDMNMX"},     {0x048, "VIMNMX"}, {0x082, "UMOV"},      {0x086, "VOTEU"},    {0x087, "USEL"},
    {0x08C, "UISETP"},        {0x090, "UIADD3"}, {0x091, "ULEA"},      {0x092, "ULOP3"},    {0x096, "UPRMT"},
    {0x099, "USHF"},          {0x0A4, "UIMAD"},  {0x0A5, "UIMAD"},     {0x0B9, "ULDC"},     {0x0BD, "UFLO"},
    {0x0BF, "UPOPC"},         {0x0CA, "R2UR"},   {0x109, "POPC"},      {0x118, "NOP"},      {0x119, "S2R"},
    {0x11B, "ENDCOLLECTIVE"}, {0x11D, "BAR"},    {0x141, "BSYNC"},     {0x142, "BREAK"},    {0x144, "CALL"},
    {0x145, "BSSY"},          {0x146, "YIELD"},  {0x147, "BRA"},       {0x148, "WARPSYNC"}, {0x149, "BRX"},
    {0x14D, "EXIT"},          {0x150, "RET"},    {0x180, "LD"},        {0x181, "LDG"},      {0x182, "LDC"},
    {0x183, "LDL"},           {0x184, "LDS"},    {0x186, "STG"},       {0x187, "STL"},      {0x188, "STS"},
    {0x189, "SHFL"},          {0x18E, "RED"},    {0x18F, "CCTL"},      {0x192, "MEMBAR"},   {0x1A8, "ATOMG"},
    {0x1AB, "ERRBAR"},        {0x1C2, "R2UR"},   {0x1C3, "S2UR"},
};

/// Where a branch leads to, in bytes.
std::optional<std::int64_t> target_of(const Instruction& instruction, std::int64_t address, int capability) {
  if (!instruction.is(Operation::kBra)) return std::nullopt;
  // 48 bits from bit 34 on; from 9.0 on, the lowest 8 of them are apart.
  std::int64_t steps =
      static_cast<std::int64_t>(instruction.high << 46 | (instruction.low >> 34 << 16)) >> 16;
  if (capability >= 90) steps = steps * 256 + static_cast<std::int64_t>(instruction.low >> 16 & 0xFF);
  return address + static_cast<std::int64_t>(Instruction::kBytes) + steps * 4;
}

}  // namespace

std::string_view name_of(Operation operation) {
  const auto found = kNames.find(static_cast<unsigned>(operation));
  return found == kNames.end() ? std::string_view{} : found->second;
}

std::vector<Loop> loops_of(const std::vector<Instruction>& code, int capability) {
  std::map<std::size_t, std::size_t> last_of;  // by first: several branches may lead back to one place
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto address = static_cast<std::int64_t>(i * Instruction::kBytes);
    const auto target = target_of(code[i], address, capability);
    if (!target || *target < 0 || *target >= address) continue;  // A branch to itself ends a kernel.
    last_of[static_cast<std::size_t>(*target) / Instruction::kBytes] = i;
  }
  std::vector<Loop> loops;
  for (const auto& [first, last] : last_of) loops.push_back({first, last});
  return loops;
}

}  // namespace lockstep::machine_code
