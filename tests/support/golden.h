// Golden files: tests/golden/<name>, numbers that Lockstep must reproduce and did not make.
// The first line says where they come from ("# From ..." or "// From ..."), and read_golden()
// refuses a file that does not say so or that names Lockstep: a golden made by the program under
// test proves nothing. Other lines that begin with # are kept; their meaning is the file's own.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

// The build sets it; without it, tests run with the root of the repository as working directory.
#ifndef LOCKSTEP_SOURCE_DIR
#define LOCKSTEP_SOURCE_DIR "."
#endif

namespace lockstep::test {

struct Golden {
  std::string source;              ///< the first line, without its comment mark
  std::vector<std::string> lines;  ///< the rest, without line ends
};

inline Golden read_golden(const std::string& name) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    throw std::runtime_error(path + ": cannot be read");
  }
  const std::size_t begin = line.find("From ");
  const bool is_comment = line.rfind("# From ", 0) == 0 || line.rfind("// From ", 0) == 0;
  if (!is_comment || line.find("Lockstep", begin) != std::string::npos) {
    throw std::runtime_error(path + ":1: must say '# From <a source that is not Lockstep>'");
  }
  Golden golden{line.substr(begin), {}};
  while (std::getline(file, line)) {
    golden.lines.push_back(line);
  }
  return golden;
}

}  // namespace lockstep::test
