#include "tests/cli/run_program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

ProgramResult run_program(const std::string& arguments, const std::string& environment) {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  const std::string err = folder.file("err");
  const std::string command =
      "{ " + environment + " " LOCKSTEP_PROGRAM " " + arguments + "; } >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  if (status < 0 || !WIFEXITED(status)) {
    throw std::runtime_error("did not exit by itself: " + command);
  }
  return {WEXITSTATUS(status), text_of(out), text_of(err)};
}

int interrupt_program(const std::vector<std::string>& arguments) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  std::vector<char*> words;
  std::string program = LOCKSTEP_PROGRAM;
  words.push_back(program.data());
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  close(ends[1]);
  // The pipe holds less than the program writes: after the first byte it is still at work.
  char byte = 0;
  const bool started = read(ends[0], &byte, 1) == 1;
  if (started) {
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  if (!started || !WIFEXITED(status)) {
    throw std::runtime_error("did not start, or did not exit by itself: " + program);
  }
  return WEXITSTATUS(status);
}

}  // namespace lockstep::test
