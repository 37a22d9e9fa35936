// Whole files: read at once, written under another name, synced and renamed, so that a file is
// there whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::exec {

/// BadInputError of `component` for what is no readable file, or has more than 4 GiB.
std::string read_whole(const std::filesystem::path& path, std::string_view component);

/// Writes `parts` one after the other. NotSupportedError if that cannot be; nothing is left then.
void write_whole(const std::filesystem::path& path, const std::vector<std::string_view>& parts);

}  // namespace lockstep::exec
