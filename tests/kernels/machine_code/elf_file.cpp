// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <stdexcept>

namespace lockstep::machine_code {
namespace {

std::string_view name_at(std::string_view names, std::size_t place) {
  const std::string_view rest = names.substr(std::min(place, names.size()));
  return rest.substr(0, rest.find('\0'));
}

std::vector<Elf64_Shdr> headers_of(std::string_view file, const Elf64_Ehdr& elf) {
  std::vector<Elf64_Shdr> headers;
  for (std::size_t i = 0; i < elf.e_shnum; ++i)
    headers.push_back(read_at<Elf64_Shdr>(file, elf.e_shoff + i * sizeof(Elf64_Shdr)));
  return headers;
}

std::string_view bytes_of(std::string_view file, const Elf64_Shdr& section) {
  return section.sh_type == SHT_NOBITS ? std::string_view{}
                                       : part_of(file, section.sh_offset, section.sh_size);
}

std::vector<Symbol> symbols_of(std::string_view table, std::string_view names) {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(table, at);
    symbols.push_back({name_at(names, symbol.st_name), symbol.st_shndx, symbol.st_value, symbol.st_size});
  }
  return symbols;
}

}  // namespace

std::string_view part_of(std::string_view file, std::uint64_t begin, std::uint64_t size) {
  if (begin > file.size() || size > file.size() - begin) throw std::runtime_error("a file ends early");
  return file.substr(begin, size);
}

ElfFile::ElfFile(std::string_view file) {
  if (file.substr(0, SELFMAG) != ELFMAG) throw std::runtime_error("no ELF file");
  const auto elf = read_at<Elf64_Ehdr>(file, 0);
  const std::vector<Elf64_Shdr> headers = headers_of(file, elf);
  const std::string_view names = bytes_of(file, headers.at(elf.e_shstrndx));
  for (const Elf64_Shdr& header : headers) {
    sections.push_back({name_at(names, header.sh_name), bytes_of(file, header), header.sh_size});
    if (header.sh_type == SHT_SYMTAB)
      symbols = symbols_of(bytes_of(file, header), bytes_of(file, headers.at(header.sh_link)));
  }
}

}  // namespace lockstep::machine_code
